//! Reader of availability records: the JSON of spot-traces, or rows of time and number.

use dormouse_input::{Chosen, ColumnPlaces, FileFlaw, Moment, Row, Rows, Source, WantedColumn};
use dormouse_units::{Span, Time};
use serde::Deserialize;

use super::SpotAvailability;

/// Length of the longest availability record that is read, in bytes.
const LONGEST: u64 = 256 << 20;
/// Greatest number of entries of an availability record; all entries become part of the run's log.
const MOST_NUMBERS: usize = 1_000_000;

/// Least number of seconds that counts as a date: 1990, in seconds since 1970.
const FIRST_DATE: f64 = 631_152_000.0;

const COLUMNS: [WantedColumn; 2] = [
    WantedColumn {
        name: "time",
        known_as: &["time", "timestamp", "at", "date", "seconds"],
        is_needed: true,
    },
    WantedColumn {
        name: "count",
        known_as: &["count", "available", "availability", "instances", "vms", "capacity", "n"],
        is_needed: true,
    },
];

/// A trace of github.com/skypilot-org/spot-traces: the number of available instances, sampled every `gap_seconds`.
#[derive(Deserialize)]
struct SkypilotTrace {
    metadata: SkypilotMetadata,
    data: Vec<f64>,
}

#[derive(Deserialize)]
struct SkypilotMetadata {
    gap_seconds: f64,
}

impl SpotAvailability {
    /// True if a file that begins with these bytes is an availability trace in JSON.
    #[must_use]
    pub fn is_trace(begins: &[u8]) -> bool {
        let text = String::from_utf8_lossy(begins);
        let is_object = text.trim_start().starts_with('{');
        is_object && text.contains("\"gap_seconds\"")
    }

    /// True if this row is the heading of an availability table.
    #[must_use]
    pub fn are_headings(first: &Row<'_>) -> bool {
        let columns = ColumnPlaces::from_heading(first, &COLUMNS, &Chosen::default());
        columns.is_ok_and(|columns| columns.is_some_and(|columns| columns.has_heading()))
    }

    /// Reads a record: the JSON of a spot-trace, or rows of a time and a number of VMs, with or
    /// without a heading. Times are seconds, spans such as `15m`, or dates, which count from the
    /// first date. That date is returned too, in seconds since 1970; `None` if there are no dates.
    ///
    /// # Errors
    ///
    /// The file can't be read, or the first entry that can't be used.
    pub fn read(mut source: Source, chosen: &Chosen) -> Result<(Self, Option<i64>), FileFlaw> {
        let (all, begins) = if source.is_json()? {
            let text = source.into_text(LONGEST)?;
            (read_skypilot_trace(&text)?, None)
        } else {
            read_rows(source, chosen)?
        };
        if all.is_empty() {
            return Err(FileFlaw::whole("it has no numbers of VMs", "write rows like: 15m,0"));
        }
        Ok((Self::new(all), begins))
    }
}

fn read_skypilot_trace(text: &str) -> Result<Vec<(Time, u32)>, FileFlaw> {
    let SkypilotTrace { metadata, data } = serde_json::from_str(text).map_err(|error| {
        let line = error.line() as u64;
        let row = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default().to_owned();
        let remedy = "write it like: {\"metadata\": {\"gap_seconds\": 300}, \"data\": [1, 1, 0]}";
        dormouse_input::FlawedRow {
            line,
            row,
            what: format!("it is not a trace of availability: {error}"),
            remedy: remedy.to_owned(),
        }
    })?;
    let gap = Some(metadata.gap_seconds).filter(|gap| *gap > 0.0).and_then(Span::from_secs_f64);
    let Some(gap) = gap else {
        let what = format!("gap_seconds is {}", metadata.gap_seconds);
        return Err(FileFlaw::whole(
            what,
            "write gap_seconds, the seconds between two numbers, such as 300",
        ));
    };
    if data.len() > MOST_NUMBERS {
        return Err(FileFlaw::whole(
            format!("it has more than {MOST_NUMBERS} numbers"),
            "give a shorter part of it",
        ));
    }
    let entry = |(n, number): (usize, &f64)| {
        let vms = vms_of(*number).ok_or_else(|| {
            FileFlaw::whole(
                format!("number {n} of data is {number}"),
                "write whole numbers of VMs, \
                     from 0 on",
            )
        })?;
        Ok((Time::ZERO + gap.times(n as u64), vms))
    };
    data.iter().enumerate().map(entry).collect()
}

fn vms_of(number: f64) -> Option<u32> {
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and in range"
    )]
    is_whole.then_some(number as u32)
}

/// Numbers of VMs, each with the time from which it holds, and the date of the first, in seconds
/// since 1970, if it is known.
type Dated = (Vec<(Time, u32)>, Option<i64>);

fn read_rows(source: Source, chosen: &Chosen) -> Result<Dated, FileFlaw> {
    let mut rows = Rows::new(source)?;
    let Some(first) = rows.first() else { return Ok((Vec::new(), None)) };
    let columns = ColumnPlaces::from_heading(&first, &COLUMNS, chosen)
        .map_err(|no| first.flaw(no.what, no.remedy))?;
    let columns = columns.unwrap_or_else(|| ColumnPlaces::in_order(&COLUMNS));
    if columns.has_heading() {
        rows.skip_first();
    }
    let (mut all, mut begins) = (Vec::new(), None);
    loop {
        let Some(row) = rows.next_row()? else { return Ok((all, begins)) };
        let right = "write rows like: 15m,0, or 900,0";
        let written = columns.cell(&row, 0);
        let span = written.parse::<Span>().ok().or_else(|| parse_seconds(written));
        let second = Moment::read(written).map(|moment| moment.second);
        let is_date = span.is_none() && second.is_some();
        if !all.is_empty() && (span.is_some() || is_date) && is_date != begins.is_some() {
            let what = "it has both dates and times from the beginning";
            return Err(row.flaw(what, "write all times in the same form").into());
        }
        let at = match span {
            Some(span) => Time::ZERO + span,
            None => {
                let second =
                    second.ok_or_else(|| row.flaw(format!("'{written}' is not a time"), right))?;
                let first = *begins.get_or_insert(second);
                let since = u64::try_from(second - first).map_err(|_| {
                    row.flaw("it is earlier than the first row", "sort the rows by time")
                })?;
                Time::from_secs(since)
            }
        };
        let written = columns.cell(&row, 1);
        let vms = written.parse::<f64>().ok().and_then(vms_of);
        let vms =
            vms.ok_or_else(|| row.flaw(format!("'{written}' is not a number of VMs"), right))?;
        if all.len() == MOST_NUMBERS {
            return Err(row
                .flaw(format!("it has more than {MOST_NUMBERS} rows"), "give a shorter part of it")
                .into());
        }
        all.push((at, vms));
    }
}

/// Parses a number of seconds since the beginning of the record; `None` if the number is so large
/// that it is a date in seconds since 1970, or if it is not a number.
fn parse_seconds(text: &str) -> Option<Span> {
    let number = text.parse::<f64>().ok().filter(|seconds| *seconds < FIRST_DATE)?;
    Span::from_secs_f64(number)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, u32)>, String> {
        let source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
        let (read, _) = SpotAvailability::read(source, &Chosen::default())
            .map_err(|error| error.to_string())?;
        Ok(read.steps().iter().map(|(at, vms)| (at.as_micros() / 1_000_000, *vms)).collect())
    }

    #[test]
    fn a_spot_trace_is_read_as_it_is() {
        // github.com/skypilot-org/spot-traces has files of this form.
        let text = r#"{"metadata": {"gap_seconds": 300}, "data": [1,1,1,0,0,1,1,1,1,0,1,1]}"#;
        let steps = vec![(0, 1), (900, 0), (1_500, 1), (2_700, 0), (3_000, 1)];
        assert_eq!(read(text).unwrap(), steps);
        let of_four =
            r#"{"data": [4, 2, 2.0, 0], "metadata": {"gap_seconds": 30}, "prices": [1.0]}"#;
        assert_eq!(read(of_four).unwrap(), [(0, 4), (30, 2), (90, 0)]);
    }

    #[test]
    fn rows_may_have_seconds_spans_or_dates() {
        let wanted = vec![(0, 1), (900, 0), (1_500, 1)];
        for text in [
            "0,1\n900,0\n1500,1\n",
            "time,count\n0s,1\n15m,0\n25m,1\n",
            "1714525200,1\n1714526100,0\n1714526700,1\n",
            "Available;Timestamp\n1;2024-01-01 00:00:00\n0;2024-01-01 00:15:00\n1;2024-01-01T00:25:00Z\n",
        ] {
            assert_eq!(read(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_availability_is_refused_with_its_place() {
        for (text, part) in [
            ("", "it has no numbers of VMs"),
            ("0,1\n900,some\n", "line 2: 'some' is not a number of VMs"),
            ("0,1\nlater,1\n", "line 2: 'later' is not a time"),
            ("0,1.5\n", "line 1: '1.5' is not a number of VMs"),
            ("0,-1\n", "'-1' is not a number"),
            ("{\"metadata\": {\"gap_seconds\": 0}, \"data\": [1]}", "gap_seconds is 0"),
            ("{\"metadata\": {}, \"data\": [1]}", "missing field `gap_seconds`"),
            ("{\"metadata\": {\"gap_seconds\": 3}, \"data\": [1, -1]}", "number 1 of data is -1"),
            ("{\"metadata\": {\"gap_seconds\": 3}, \"data\": []}", "it has no numbers"),
            ("2024-01-02 00:00:00,1\n2024-01-01 00:00:00,1\n", "earlier than the first row"),
            ("0,1\n2024-01-01 00:00:00,1\n", "both dates and times from the beginning"),
            ("2024-01-01 00:00:00,1\n900,1\n", "both dates and times from the beginning"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
