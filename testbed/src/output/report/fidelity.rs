//! How true a live run was: the verdict, the tasks' times, what their CPU time went into, shares.

use super::html::{paragraph, table};
use crate::output::{Fidelity, Outcome, task_times};

/// The content of the section.
pub(super) fn fidelity(outcome: &Outcome<'_>, fidelity: &Fidelity) -> String {
    let word = if fidelity.faithful { "faithful" } else { "NOT faithful" };
    let mut text = paragraph(&format!("The emulation was {word}."));
    for note in &fidelity.notes {
        text += &paragraph(note);
    }
    if let Some(load) = fidelity.other_load {
        let load = percent(load);
        text += &paragraph(&format!("Other processes used {load} of the hosts' cores meanwhile."));
    }
    text + &times(outcome, fidelity) + &cpu(fidelity) + &shares(outcome, fidelity)
}

/// Times taken against times promised.
fn times(outcome: &Outcome<'_>, fidelity: &Fidelity) -> String {
    let of = &fidelity.tasks;
    if of.tasks_judged == 0 {
        return paragraph("No task finished: there is no time to be judged.");
    }
    let live = &outcome.header.experiment.live;
    let [low, middle, high] = of.task_error_quantiles.map(signed);
    let rows = [
        ["tasks judged by their time", &of.tasks_judged.to_string()],
        ["mean error, the bias", &signed(of.mean_task_error)],
        ["at most allowed", &percent(live.mean_error)],
        ["worst error", &signed(of.worst_task_error)],
        ["at most allowed", &percent(live.worst_error)],
        ["errors at 5, 50 and 95 % of the tasks", &format!("{low}, {middle}, {high}")],
        ["attempts that did not finish, judged by their work", &of.attempts_unfinished.to_string()],
        ["their worst error", &signed(of.worst_unfinished_error)],
        ["most that a task's work was ahead of its promise", &percent(of.worst_ahead)],
        ["most that it was behind", &percent(of.worst_behind)],
        ["checkpoints that came after a task's end", &of.checkpoints_missed.to_string()],
    ];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec());
    let about = paragraph(
        "Each task's time against the time its VM promised it: its work at that speed and its \
         holds, from the command on, without the time its VM was hibernated.",
    );
    about + &table(&["", "of the time or work promised"], 1, &rows) + &every_task(outcome)
}

/// Each task's time, folded: there may be many.
fn every_task(outcome: &Outcome<'_>) -> String {
    let mut times = task_times(outcome.record);
    times.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    let rows: Vec<_> = times
        .iter()
        .map(|time| {
            vec![
                time.task.to_string(),
                format!("{:.2} s", time.promised.as_secs_f64()),
                format!("{:.2} s", time.took.as_secs_f64()),
                signed(time.error()),
            ]
        })
        .collect();
    let table = table(&["task", "promised", "took", "error"], 1, &rows);
    format!("<details><summary>Every task, the worst first</summary>{table}</details>\n")
}

/// What the CPU time that was charged for tasks went into.
fn cpu(fidelity: &Fidelity) -> String {
    let of = &fidelity.tasks;
    let seconds = |s: f64| format!("{s:.3} s");
    let rows = [
        ("the tasks' own work", of.worked_s),
        ("their births", of.births_s),
        ("CRIU, in and around them", of.criu_s),
        ("the rest: ends, waits, results", of.rest_s),
    ];
    let rows = rows.map(|(what, s)| vec![what.to_owned(), seconds(s)]);
    table(&["CPU time charged for tasks", "real"], 1, &rows)
}

fn shares(outcome: &Outcome<'_>, fidelity: &Fidelity) -> String {
    let about = paragraph(&format!(
        "CPU time that VMs received differs from what they were promised by {} on average, by {} \
         at worst.",
        percent(fidelity.mean_share_error),
        percent(fidelity.worst_share_error)
    ));
    #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
    let ms = |us: u64| format!("{:.0} ms", us as f64 / 1e3);
    let vms = outcome.record.vms.values();
    let rows: Vec<_> = vms
        .filter_map(|vm| {
            let (promised, received) = vm.share?;
            Some(vec![vm.id.to_string(), vm.kind.to_string(), ms(promised), ms(received)])
        })
        .collect();
    about + &table(&["VM", "type", "promised", "received"], 2, &rows)
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn signed(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}
