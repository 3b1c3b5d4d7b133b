//! Reader of interruptions as tables: rows with a time, an action and the VMs concerned.

use dormouse_input::{Chosen, ColumnPlaces, FileFlaw, Moment, Row, Rows, Source, WantedColumn};
use dormouse_units::{Span, Time, TypeName, VmId, ZoneName};

use crate::act_events::read_events;
use crate::{Interruption, InterruptionAction, InterruptionTarget};

/// Greatest number of rows of a record of interruptions; all rows become part of the run's log.
pub(crate) const MOST_ROWS: usize = 100_000;

/// Least number of seconds that counts as a date: 1990, in seconds since 1970.
const FIRST_DATE: f64 = 631_152_000.0;

const COLUMNS: [WantedColumn; 5] = [
    WantedColumn {
        name: "time",
        known_as: &["time", "at", "timestamp", "date", "seconds"],
        is_needed: true,
    },
    WantedColumn { name: "action", known_as: &["action", "act", "event", "what"], is_needed: true },
    WantedColumn {
        name: "type",
        known_as: &["type", "instance type", "machine type", "vm type"],
        is_needed: false,
    },
    WantedColumn { name: "zone", known_as: &["zone", "availability zone", "az"], is_needed: false },
    WantedColumn { name: "vm", known_as: &["vm", "vm number", "instance"], is_needed: false },
];

/// An interruption from a record, with the line of the record that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAct {
    /// The interruption: time, action and VMs.
    pub act: Interruption,
    /// Line number of the interruption in the file, from 1.
    pub line: u64,
    /// Text of the line that holds the interruption.
    pub row: String,
}

/// True if the row `first` is the heading of a record of interruptions.
#[must_use]
pub fn are_acts(first: &Row<'_>) -> bool {
    let columns = ColumnPlaces::from_heading(first, &COLUMNS, &Chosen::default());
    columns.is_ok_and(|columns| columns.is_some_and(|columns| columns.has_heading()))
}

/// Reads a record of interruptions: rows under a heading with `time` and `action`, and with `type`,
/// `zone` or `vm` (a number from 0, in the order of launches) for the VMs concerned; a row without
/// any of them applies to all spot VMs. A time is a number of seconds, a span such as `15m`, or a
/// date, which counts from `begins` in seconds since 1970. Events of EventBridge or Compute Engine
/// in JSON are read too.
///
/// # Errors
///
/// The file can't be read, or the first row that can't be used.
pub fn read_acts(
    mut source: Source,
    chosen: &Chosen,
    begins: Option<i64>,
) -> Result<Vec<WrittenAct>, FileFlaw> {
    if source.is_json()? {
        if !chosen.is_empty() {
            return Err(FileFlaw::whole("events have no columns", "leave columns out"));
        }
        return read_events(source, begins);
    }
    let mut rows = Rows::new(source)?;
    let right = "begin with a row of names, such as: time,action,type";
    let Some(first) = rows.first() else { return Err(FileFlaw::whole("it has no rows", right)) };
    let columns = ColumnPlaces::from_heading(&first, &COLUMNS, chosen)
        .map_err(|no| first.flaw(no.what, no.remedy))?;
    let columns = columns.ok_or_else(|| first.flaw("its first row names no columns", right))?;
    if columns.has_heading() {
        rows.skip_first();
    }
    let mut acts = Vec::new();
    while let Some(row) = rows.next_row()? {
        if acts.len() == MOST_ROWS {
            return Err(row
                .flaw(format!("it has more than {MOST_ROWS} rows"), "give a shorter part of it")
                .into());
        }
        let act = read_act(&row, &columns, begins)?;
        let flaw = row.flaw("", "");
        acts.push(WrittenAct { act, line: flaw.line, row: flaw.row });
    }
    if acts.is_empty() {
        return Err(FileFlaw::whole(
            "it has no interruptions",
            "write rows like: 15m,preempt,c3.large",
        ));
    }
    Ok(acts)
}

fn read_act(
    row: &Row<'_>,
    columns: &ColumnPlaces,
    begins: Option<i64>,
) -> Result<Interruption, FileFlaw> {
    let [time, action, kind, zone, vm] = [0, 1, 2, 3, 4].map(|n| columns.cell(row, n));
    let at = parse_time(time, begins).map_err(|(what, remedy)| row.flaw(what, remedy))?;
    let action = match action.to_ascii_lowercase().as_str() {
        "hibernate" | "hibernation" | "stop" => InterruptionAction::Hibernate,
        "resume" | "resumption" | "start" => InterruptionAction::Resume,
        "preempt" | "preempted" | "preemption" | "terminate" | "interrupt" => {
            InterruptionAction::Preempt
        }
        "rebalance" | "rebalance recommendation" => InterruptionAction::Rebalance,
        _ => {
            let what = format!("'{action}' is nothing that a provider does");
            return Err(row.flaw(what, "write hibernate, resume, preempt or rebalance").into());
        }
    };
    let target = match (kind, zone, vm) {
        ("", "", "") => InterruptionTarget::All,
        (kind, "", "") => InterruptionTarget::Type(TypeName::from(kind)),
        ("", zone, "") => InterruptionTarget::Zone(ZoneName::from(zone)),
        (kind, zone, "") => {
            InterruptionTarget::Type(TypeName::from(kind).in_zone(&ZoneName::from(zone)))
        }
        ("", "", vm) => {
            let number = vm.trim_start_matches("vm").trim().parse::<u32>();
            let number = number.map_err(|_| {
                row.flaw(
                    format!("'{vm}' is not the number of a VM"),
                    "number VMs from 0, as vms.csv has them",
                )
            })?;
            InterruptionTarget::Vm(VmId::new(number))
        }
        _ => {
            let what = "it names a VM and its type or zone";
            return Err(row
                .flaw(what, "name the VM alone, or the type and zone without it")
                .into());
        }
    };
    Ok(Interruption { at, target, action })
}

fn parse_time(text: &str, begins: Option<i64>) -> Result<Time, (String, &'static str)> {
    // A number of so many seconds is a date, counted from 1970.
    let number = || text.parse::<f64>().ok().filter(|seconds| *seconds < FIRST_DATE);
    let seconds = || number().and_then(Span::from_secs_f64);
    if let Some(span) = text.parse::<Span>().ok().or_else(seconds) {
        return Ok(Time::ZERO + span);
    }
    let right = "write seconds, a span such as 15m, or a date such as 2024-01-31 12:00:00";
    let Some(moment) = Moment::read(text) else {
        return Err((format!("'{text}' is not a time"), right));
    };
    let Some(begins) = begins else {
        let what = format!("'{text}' is a date, but the run has no date of its own");
        return Err((what, "say when it begins: begins = \"2024-01-31 12:00:00\""));
    };
    let since = u64::try_from(moment.second - begins);
    since.map(Time::from_secs).map_err(|_| {
        (
            format!("'{text}' is before the run begins"),
            "leave the row out, or set an earlier `begins`",
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str, begins: Option<i64>) -> Result<Vec<Interruption>, String> {
        let source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
        let acts =
            read_acts(source, &Chosen::default(), begins).map_err(|error| error.to_string())?;
        Ok(acts.into_iter().map(|written| written.act).collect())
    }

    #[test]
    fn acts_are_of_a_type_a_zone_a_vm_or_all() {
        let text = "time,action,type,zone,vm\n\
                    15m,preempt,v100,,\n\
                    900,hibernate,,us-east-1a,\n\
                    1000.5,resume,,,3\n\
                    20m,Rebalance,,,\n\
                    25m,preempt,v100,us-east-1b,\n";
        let act = |at, target, action| Interruption { at: Time::from_micros(at), target, action };
        let wanted = [
            act(900_000_000, InterruptionTarget::Type("v100".into()), InterruptionAction::Preempt),
            act(
                900_000_000,
                InterruptionTarget::Zone("us-east-1a".into()),
                InterruptionAction::Hibernate,
            ),
            act(1_000_500_000, InterruptionTarget::Vm(VmId::new(3)), InterruptionAction::Resume),
            act(1_200_000_000, InterruptionTarget::All, InterruptionAction::Rebalance),
            act(
                1_500_000_000,
                InterruptionTarget::Type("v100@us-east-1b".into()),
                InterruptionAction::Preempt,
            ),
        ];
        assert_eq!(read(text, None).unwrap(), wanted);
    }

    #[test]
    fn dates_count_from_the_run_s_beginning_and_columns_stand_in_any_order() {
        let text = "Event;Timestamp;Instance Type\nPREEMPT;2024-01-01T00:15:00Z;v100\n";
        let begins = Moment::read("2024-01-01 00:00:00").unwrap().second;
        let acts = read(text, Some(begins)).unwrap();
        let target = InterruptionTarget::Type("v100".into());
        assert_eq!(
            acts,
            [Interruption {
                at: Time::from_secs(900),
                target,
                action: InterruptionAction::Preempt
            }]
        );
        let error = read(text, None).unwrap_err();
        assert!(error.starts_with("line 2: '2024-01-01T00:15:00Z' is a date"), "{error}");
        let unix = "time,action,type\n1704068100,preempt,v100\n";
        assert_eq!(read(unix, Some(begins)).unwrap()[0].at, Time::from_secs(900));
        let error = read(text, Some(begins + 1_000)).unwrap_err();
        assert!(error.contains("is before the run begins"), "{error}");
    }

    #[test]
    fn what_is_no_act_is_refused_with_its_place() {
        for (text, part) in [
            ("", "it has no rows"),
            ("time,action\n", "it has no interruptions"),
            ("15m,preempt,v100\n", "line 1: its first row names no columns"),
            ("time,type\n15m,v100\n", "there is no column 'action'"),
            ("time,action\n15m,explode\n", "line 2: 'explode' is nothing that a provider does"),
            ("time,action\nsoon,preempt\n", "line 2: 'soon' is not a time"),
            ("time,action,vm\n15m,preempt,x\n", "'x' is not the number of a VM"),
            ("time,action,vm,type\n15m,preempt,1,v100\n", "it names a VM and its type or zone"),
        ] {
            let error = read(text, None).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
