//! Fidelity of a live run, and the reason for its speed-up, in the view.

use dormouse_host::calibration::CellOutcome;
use dormouse_units::Span;
use dormouse_view::{PageBlock, TableColumn, TextTone, TypedTable};

use super::SummaryLine;
use super::outcome::BagResults;
use super::summary_parts::by_count;
use crate::calibration;
use crate::output::LogHeader;
use dormouse_analysis::fidelity::{FidelityVerdict, task_times};

/// Summary lines with the verdict on the emulation, its errors in words, and notes.
pub(super) fn lines(fidelity: &FidelityVerdict, errors: &str) -> Vec<SummaryLine> {
    let word = if fidelity.faithful { "faithful" } else { "NOT FAITHFUL" };
    let share = format!("{errors}worst share error {:.1} %", fidelity.worst_share_error * 100.0);
    let verdict =
        SummaryLine::verdict("emulation", fidelity.faithful, word).and(TextTone::Plain, share);
    let notes = fidelity.notes.iter().chain(&fidelity.evidence);
    let notes = notes.map(|note| SummaryLine::plain("", note));
    [verdict].into_iter().chain(notes).collect()
}

/// The verdict on the emulation as the beginning of a sentence.
pub(super) fn verdict(fidelity: &FidelityVerdict) -> String {
    format!("The emulation was {}faithful", if fidelity.faithful { "" } else { "NOT " })
}

/// Section "Fidelity" of a run with a bag: the verdict, the tasks' times, the use of their CPU
/// time, and shares.
pub(super) fn section(of: &BagResults<'_>) -> Vec<PageBlock> {
    let Some(fidelity) = &of.of.fidelity else { return Vec::new() };
    let mut blocks = vec![PageBlock::text(format!("{}.", verdict(fidelity)))];
    blocks.extend(fidelity.notes.iter().chain(&fidelity.evidence).map(PageBlock::text));
    blocks.extend(by_count(of.record).into_iter().map(|(why, count)| {
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        PageBlock::text(format!("A checkpoint failed {times}: {why}."))
    }));
    blocks.extend(fidelity.other_load.map(percent).map(|load| {
        PageBlock::text(format!("Other processes used {load} of the hosts' cores meanwhile."))
    }));
    blocks.extend(time_blocks(of, fidelity));
    blocks.extend([
        PageBlock::Table(cpu_table(fidelity)),
        shares_text(fidelity),
        PageBlock::Table(share_table(of)),
    ]);
    blocks
}

/// Blocks of the page that compare the measured times of tasks with the promised times.
fn time_blocks(of: &BagResults<'_>, fidelity: &FidelityVerdict) -> Vec<PageBlock> {
    let tasks = &fidelity.tasks;
    if !of.has_tasks() {
        return Vec::new();
    }
    if tasks.tasks_judged == 0 {
        return vec![PageBlock::text("No task finished: there is no time to be judged.")];
    }
    let live = &of.of.header.experiment.live;
    let [low, middle, high] = tasks.task_error_quantiles.map(signed);
    let rows = [
        ("tasks that finished", tasks.tasks_finished.to_string()),
        ("finished tasks whose time was compared", tasks.tasks_judged.to_string()),
        ("mean error (the bias)", signed(tasks.mean_task_error)),
        ("mean error allowed", percent(live.mean_error)),
        ("worst error", signed(tasks.worst_task_error)),
        ("worst error allowed", percent(live.worst_error)),
        ("error that 5, 50 and 95 % of the tasks stay below", format!("{low}, {middle}, {high}")),
        (
            "attempts that did not finish, compared by the work that they did",
            tasks.attempts_unfinished.to_string(),
        ),
        ("worst error of these", signed(tasks.worst_unfinished_error)),
        ("furthest that a task's work was ahead of its promise", percent(tasks.worst_ahead)),
        ("furthest that a task's work was behind it", percent(tasks.worst_behind)),
        (
            "checkpoints that came too late, after the end of their task",
            tasks.checkpoints_missed.to_string(),
        ),
    ];
    let table = TypedTable::with_rows(rows)
        .column(TableColumn::text("tasks against their promises"), |(what, _)| *what)
        .column(TableColumn::text("count, or part of what was promised"), |(_, value)| {
            value.clone()
        });
    let about = "A task's error is by how much longer it took than its VM had promised. The promise is its \
                 work at the VM's speed and the pauses for its checkpoints, counted from the command \
                 to start it, without the time that its VM was hibernated.";
    let every = PageBlock::Folded(
        "Every task, the largest error first".to_owned(),
        vec![PageBlock::Table(every_task(of))],
    );
    vec![PageBlock::text(about), PageBlock::Table(table.into()), every]
}

fn every_task(of: &BagResults<'_>) -> TypedTable {
    let mut times = task_times(of.record);
    times.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    TypedTable::with_rows(times)
        .column(TableColumn::text("task"), |time| time.task.to_string())
        .column(TableColumn::seconds("promised").digits(2), |time| time.promised)
        .column(TableColumn::seconds("took").digits(2), |time| time.took)
        .column(TableColumn::text("error"), |time| signed(time.error()))
        .into()
}

/// Table of what the CPU time charged for tasks was used for.
fn cpu_table(fidelity: &FidelityVerdict) -> TypedTable {
    let of = &fidelity.tasks;
    let parts = [
        ("the tasks' own work", of.worked_s),
        ("starting their processes", of.births_s),
        ("CRIU: checkpoints and restores", of.criu_s),
        ("the rest: ending, waiting, reporting results", of.rest_s),
    ];
    TypedTable::with_rows(parts)
        .column(TableColumn::text("CPU time of tasks"), |(what, _)| *what)
        .column(TableColumn::number("real, s").digits(3), |(_, seconds)| *seconds)
        .into()
}

fn shares_text(fidelity: &FidelityVerdict) -> PageBlock {
    PageBlock::text(format!(
        "CPU time that VMs received differs from what they were promised by {} on average, by {} \
         at worst.",
        percent(fidelity.mean_share_error),
        percent(fidelity.worst_share_error)
    ))
}

fn share_table(of: &BagResults<'_>) -> TypedTable {
    // Real seconds, whatever the unit of emulated times.
    let real = |heading| TableColumn::number(heading).digits(3);
    let seconds = |us: u64| Span::from_micros(us).as_secs_f64();
    TypedTable::with_rows(of.record.vms.values().filter_map(|vm| Some((vm, vm.share?))))
        .column(TableColumn::text("VM"), |(vm, _)| vm.id.to_string())
        .column(TableColumn::text("type"), |(vm, _)| vm.kind.as_str())
        .column(real("CPU time promised, real s"), |(_, share)| seconds(share.0))
        .column(real("received, real s"), |(_, share)| seconds(share.1))
        .into()
}

/// Section "Speed-up": the reason for a live run's speed-up and the measured limits of its host;
/// empty if the speed-up was not chosen automatically.
pub(super) fn speedup(header: &LogHeader) -> Vec<PageBlock> {
    let Some(choice) = &header.speedup else { return Vec::new() };
    let mut blocks = vec![PageBlock::text(format!("It ran at {choice}."))];
    let Some(calibration) = &choice.calibration else { return blocks };
    let host = &calibration.host;
    blocks.push(PageBlock::text(format!(
        "How far tasks were from their twins in virtual time, (live − virtual) / virtual of their times, \
         as dormouse calibrate measured it on this host until {} ({} cores, kernel {}). The load is the \
         part of the host's vCPUs that are busy at once; the host has 24 of them a core.",
        calibration.made,
        f64::from(host.millicores) / 1e3,
        host.kernel
    )));
    blocks.push(PageBlock::Table(calibration::table(calibration)));
    blocks.extend(calibration.cells.iter().filter_map(|cell| match &cell.came {
        CellOutcome::Refused { why } => Some(PageBlock::text(format!(
            "Speed-up {} at load {} was refused: {why}",
            cell.speedup, cell.load
        ))),
        CellOutcome::Measured(_) => None,
    }));
    blocks
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn signed(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}
