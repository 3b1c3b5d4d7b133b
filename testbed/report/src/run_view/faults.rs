//! Injected faults in the view: when each was in effect, and what it cost.

use dormouse_analysis::outcome::wording;
use dormouse_analysis::{FaultCost, FaultHistory, RunMode, RunRecord};
use dormouse_model::{FaultKind, HostFault};
use dormouse_units::{HostId, Span, Speedup, Time};
use dormouse_view::plot::{BarFill, GanttBar, GanttChart, GanttLane, GanttPlace};
use dormouse_view::{PageBlock, TableColumn, TypedTable};
use serde_json::{Value, json};

use super::SummaryLine;
use super::outcome::RunResults;

/// A fault of the experiment with its consequences.
#[derive(Clone, Debug)]
pub(super) struct FaultResult<'a> {
    n: usize,
    asked: &'a HostFault,
    speedup: Option<Speedup>,
    /// The fault's history and cost; `None` if the fault never occurred in the run.
    came: Option<(&'a FaultHistory, FaultCost)>,
}

/// All faults of the experiment; empty if it has none.
pub(super) fn faulted<'a>(results: &'a RunResults<'_>) -> Vec<FaultResult<'a>> {
    let faults = &results.header.experiment.faults;
    let record = results.record.as_ref().or(results.of_hosts.as_ref());
    let came = |n: usize| {
        let record = record?;
        let history = record.faults.iter().find(|history| history.fault.get() as usize == n)?;
        Some((history, record.cost_of(history)))
    };
    let speedup = record.and_then(|record| record.speedup);
    let faults = faults.iter().enumerate();
    faults.map(|(n, asked)| FaultResult { n, asked, speedup, came: came(n) }).collect()
}

impl FaultResult<'_> {
    /// Outcome of the fault in a word or two.
    fn outcome_in_words(&self) -> String {
        let Some((history, _)) = &self.came else { return "not asked for".to_owned() };
        let refused = history.hosts.values().filter_map(|on| on.refused.as_deref()).next();
        match (history.hosts.is_empty(), refused) {
            (true, _) => "no host was meant".to_owned(),
            (false, Some(why)) => format!("refused: {why}"),
            (false, None) if self.is_over() => "over".to_owned(),
            (false, None) if history.kind == FaultKind::Kill => {
                "asked for, and no host is known to be gone".to_owned()
            }
            (false, None) => "not known to be over".to_owned(),
        }
    }

    /// Whether the fault had an effect on some host, and is over on each of its hosts that was not
    /// lost.
    fn is_over(&self) -> bool {
        self.came.as_ref().is_some_and(|(history, _)| {
            let is_over = !history.hosts.is_empty();
            is_over && history.hosts.values().all(|on| on.over.is_some() || on.lost.is_some())
        })
    }

    fn hosts(&self) -> String {
        let hosts = self.came.iter().flat_map(|(history, _)| history.hosts.keys());
        hosts.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    fn asked(&self) -> Option<Time> {
        self.came.as_ref().map(|(history, _)| history.asked)
    }

    /// Longest real time from the fault's command until the fault was in effect on a host; `None` if the fault never
    /// took effect.
    fn took(&self) -> Option<Span> {
        let (history, _) = self.came.as_ref()?;
        let took = history.hosts.values().filter_map(|on| on.begun_real_us).max();
        took.map(Span::from_micros)
    }

    /// Time at which the fault was over on the last of its hosts, or that host was lost; `None` if the fault is not
    /// over.
    fn over(&self) -> Option<Time> {
        let (history, _) = self.came.as_ref().filter(|_| self.is_over())?;
        history.hosts.keys().filter_map(|host| history.until(*host, self.speedup)).max()
    }

    fn cost(&self) -> FaultCost {
        self.came.as_ref().map(|(_, cost)| *cost).unwrap_or_default()
    }
}

/// Kind of the fault in words.
fn kind_in_words(kind: FaultKind) -> String {
    let ms = |us: u64| format!("{} ms", us as f64 / 1e3);
    match kind {
        FaultKind::Delay { real_us } => format!("delay of {}", ms(real_us)),
        FaultKind::Loss { part } => format!("loss of {part}"),
        FaultKind::Rate { bytes_per_second } => format!("rate of {bytes_per_second} a second"),
        FaultKind::SlowCriu { real_us } => format!("CRIU slower by {}", ms(real_us)),
        FaultKind::DiskFull => "disk full".to_owned(),
        FaultKind::Partition | FaultKind::Kill | FaultKind::Pause => kind.name().to_owned(),
    }
}

/// The table `faults.csv`, one row for each fault; `None` if the experiment has none.
pub(super) fn table(faults: &[FaultResult<'_>]) -> Option<TypedTable> {
    if faults.is_empty() {
        return None;
    }
    let table = TypedTable::with_rows(faults.to_vec())
        .column(TableColumn::text("fault"), |it| format!("fault{}", it.n))
        .column(TableColumn::text("kind"), |it| it.asked.kind.name())
        .column(TableColumn::text("what"), |it| kind_in_words(it.asked.kind))
        .column(TableColumn::text("meant for").named("meant_for"), |it| it.asked.on.to_string())
        .column(TableColumn::text("hosts"), FaultResult::hosts)
        .column(TableColumn::seconds("due at").named("due_s"), |it| it.asked.at)
        .column(TableColumn::seconds("lasts").named("lasts_s"), |it| it.asked.lasts)
        .column(TableColumn::seconds("asked for at").named("asked_s"), FaultResult::asked)
        .column(
            TableColumn::seconds("took effect after, real").named("took_real_s").digits(3),
            FaultResult::took,
        )
        .column(TableColumn::seconds("over at").named("over_s"), FaultResult::over)
        .column(TableColumn::text("outcome").named("came_to"), FaultResult::outcome_in_words)
        .column(TableColumn::count(wording::HOSTS_LOST).named("hosts_lost"), |it| {
            it.cost().hosts_lost
        })
        .column(TableColumn::count(wording::VMS_LOST).named("vms_lost"), |it| it.cost().vms_lost)
        .column(TableColumn::count(wording::ATTEMPTS_LOST).named("attempts_lost"), |it| {
            it.cost().attempts_lost
        })
        .column(TableColumn::count("checkpoints failed").named("checkpoints_failed"), |it| {
            it.cost().checkpoints_failed
        })
        .column(TableColumn::seconds(wording::WORK_LOST).named("work_lost_s"), |it| {
            it.cost().work_lost
        })
        .column(TableColumn::seconds("tasks late by").named("late_s"), |it| it.cost().late);
    Some(table.into())
}

/// Lines for a terminal: number and total cost of the faults, or the message that no fault
/// occurred.
pub(super) fn lines(results: &RunResults<'_>, faults: &[FaultResult<'_>]) -> Vec<SummaryLine> {
    if faults.is_empty() {
        return Vec::new();
    }
    if results.header.mode == RunMode::Virtual {
        return vec![SummaryLine::plain("faults", not_in_virtual_time(faults.len()))];
    }
    let over = faults.iter().filter(|fault| fault.is_over()).count();
    let cost = |of: fn(&FaultCost) -> u32| faults.iter().map(|it| of(&it.cost())).sum::<u32>();
    let gone = (cost(|it| it.hosts_lost), cost(|it| it.vms_lost), cost(|it| it.attempts_lost));
    let all = format!(
        "{}, {} checkpoints failed",
        wording::faults_line(over, faults.len(), gone),
        cost(|it| it.checkpoints_failed),
    );
    let others = faults.iter().filter(|fault| !fault.is_over());
    let others = others.map(|fault| {
        let (n, what) = (fault.n, kind_in_words(fault.asked.kind));
        SummaryLine::verdict("", false, format!("fault{n}, {what}: {}", fault.outcome_in_words()))
    });
    let counts = "what they did to tasks and VMs counts in the verdict on the emulation";
    [SummaryLine::plain("faults", all), SummaryLine::plain("", counts)]
        .into_iter()
        .chain(others)
        .collect()
}

fn not_in_virtual_time(count: usize) -> String {
    let (are, they) = if count == 1 { ("one fault is", "it") } else { ("faults are", "they") };
    let count = if count == 1 { String::new() } else { format!("{count} ") };
    format!(
        "{count}{are} of live runs: in virtual time there is no network and no disk, and {they} did not happen"
    )
}

/// Section "Faults": each fault with its cost.
pub(super) fn section(results: &RunResults<'_>, faults: &[FaultResult<'_>]) -> Vec<PageBlock> {
    let Some(table) = table(faults) else { return Vec::new() };
    if results.header.mode == RunMode::Virtual {
        return vec![PageBlock::text(format!(
            "The experiment's {}.",
            not_in_virtual_time(faults.len())
        ))];
    }
    let about = "A fault counts what happened on its hosts from when it was asked for until it was over; where two \
                 are in effect on a host at once, both count it. Tasks are late by how much longer their attempts took \
                 than their VMs had promised.";
    vec![PageBlock::Table(table), PageBlock::text(about)]
}

/// The part of `summary.json`; null if the experiment has no faults.
pub(super) fn summary(faults: &[FaultResult<'_>]) -> Value {
    if faults.is_empty() {
        return Value::Null;
    }
    let one = |it: &FaultResult<'_>| {
        let FaultCost { hosts_lost, vms_lost, attempts_lost, work_lost, checkpoints_failed, late } =
            it.cost();
        let hosts = it.came.as_ref().map(|(history, _)| history.hosts.keys().collect::<Vec<_>>());
        json!({
            "fault": it.n,
            "kind": it.asked.kind.name(),
            "what": kind_in_words(it.asked.kind),
            "due_s": it.asked.at.as_secs_f64(),
            "lasts_s": it.asked.lasts.as_secs_f64(),
            "asked_s": it.asked().map(Time::as_secs_f64),
            "took_real_s": it.took().map(Span::as_secs_f64),
            "over_s": it.over().map(Time::as_secs_f64),
            "hosts": hosts,
            "came_to": it.outcome_in_words(),
            "hosts_lost": hosts_lost,
            "vms_lost": vms_lost,
            "attempts_lost": attempts_lost,
            "checkpoints_failed": checkpoints_failed,
            "work_lost_s": work_lost.as_secs_f64(),
            "late_s": late.as_secs_f64(),
        })
    };
    faults.iter().map(one).collect()
}

/// Adds a lane for each host that had a fault, below the VMs.
pub(super) fn draw(gantt: &mut GanttChart, record: &RunRecord) {
    for (host, name) in record.hosts.iter().map(|(host, history)| (*host, &history.name)) {
        let mut rows: Vec<Time> = Vec::new();
        let (lane, mut bars) = (gantt.lanes.len(), Vec::new());
        for history in &record.faults {
            let Some((from, until)) = in_effect(history, host, record) else { continue };
            // The first row that is free by then.
            let row = rows.iter().position(|free| *free <= from).unwrap_or(rows.len());
            rows.resize(rows.len().max(row + 1), Time::ZERO);
            rows[row] = until;
            let row = u32::try_from(row).unwrap_or(u32::MAX - 1);
            let (fault, what) = (history.fault, kind_in_words(history.kind));
            bars.push(GanttBar {
                place: GanttPlace::rows(lane, row..row + 1),
                from,
                until,
                fill: BarFill::Fault,
                label: history.fault.get().to_string(),
                title: format!("{fault}: {what} on {host} ({name})"),
            });
        }
        if bars.is_empty() {
            continue;
        }
        gantt.lanes.push(GanttLane {
            name: host.to_string(),
            about: "its faults".to_owned(),
            title: format!("{host} ({name})"),
            rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            ..GanttLane::default()
        });
        gantt.bars.extend(bars);
    }
}

/// Time span for which a fault was in effect on a host.
fn in_effect(history: &FaultHistory, host: HostId, record: &RunRecord) -> Option<(Time, Time)> {
    history.hosts.get(&host).filter(|on| on.refused.is_none())?;
    let until = history.until(host, record.speedup);
    Some((history.asked, until.unwrap_or(history.asked + history.lasts).min(record.end())))
}
