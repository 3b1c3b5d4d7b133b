//! Explains why the unfinished tasks of a run are unfinished.

use dormouse_analysis::LiveFacts;
use dormouse_engine::{Run, TaskState};

/// Number of tasks that are named; the rest is counted.
const NAMED: usize = 5;

/// Describes what each unfinished task waits for, the first few by name.
pub(super) fn explain_unfinished(run: &Run, facts: &LiveFacts) -> String {
    let names = run.setup().bag.tasks.iter().map(|task| task.name.clone());
    let tasks = run.tasks().iter().zip(names.map(Some).chain(std::iter::repeat(None)));
    let unfinished = tasks.filter(|(record, _)| record.state != TaskState::Finished);
    let alive = run.provider().alive_vms().count();
    let mut text = format!("{} tasks are left", run.unfinished_count());
    for (n, (record, name)) in unfinished.enumerate() {
        if n == NAMED {
            text += &format!(", and {} more", run.unfinished_count() - NAMED);
            break;
        }
        let state = match record.state {
            TaskState::Waiting if alive == 0 => "waits for a VM, and there is none".to_owned(),
            TaskState::Waiting => format!("waits to be started on one of {alive} VMs"),
            TaskState::Sent(vm) => format!("was sent to {vm} and not heard of"),
            TaskState::Running(vm) => match run.provider().find_vm(vm) {
                Some(on) => format!("is on {vm}, which is {}", on.state),
                None => format!("is on {vm}"),
            },
            TaskState::Stopping(vm) => format!("is being stopped on {vm}"),
            TaskState::Finished => continue,
        };
        let number = record.job.as_ref().map(|job| job.number);
        let name = name.unwrap_or_else(|| format!("job {}", number.unwrap_or_default()));
        text += &format!("{} '{name}' {state}", if n == 0 { ":" } else { "," });
    }
    if let Some(why) = &facts.last_refusal {
        text += &format!("; the last launch refused was {why}");
    }
    if let Some(why) = &facts.last_failure {
        text += &format!("; the last attempt that failed was {why}");
    }
    text
}
