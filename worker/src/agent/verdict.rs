//! Judging the outcome of a program that ended.

use std::time::Duration;

use dormouse_tasks::{cli::NO_TEAM, result::Figure};
use dormouse_units::Bytes;

use super::machine::VmMachine;
use crate::{cgroup, process::ProcessEnd, workspace::TaskName};

/// Bytes of a failed program's output in a report.
const LAST_WORDS: u64 = 400;

/// Largest fraction (0 to 1) of the CPU time of its work that a program may lack; beyond it the program's answer isn't believed.
const MAY_LACK: f64 = 0.5;

/// CPU time of a task, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// CPU time that the kernel charged to the task, in nanoseconds.
    pub charged: u64,
    /// CPU time that the task's work takes, in nanoseconds.
    pub due: u64,
}

/// Judges whether the answer of an ended program is right; returns whether it is, and the answer as JSON. `killed_before` processes
/// of its VM were killed for lack of memory before it began. A program that ended long before its work can have been done isn't
/// believed, if `work` is known.
///
/// # Errors
///
/// Why there is no answer, with the program's last output.
pub(crate) fn judge_answer(
    machine: &dyn VmMachine,
    name: &TaskName,
    ended: ProcessEnd,
    killed_before: u64,
    work: Option<CpuTime>,
) -> Result<(bool, String), String> {
    let how = match (ended, machine.answer(name)) {
        (ProcessEnd::Exited(0 | 1 | 3), Ok(mut result)) => {
            if let Some(figure) = work.and_then(lacking_work) {
                tracing::warn!(task = %name, "{}", describe_lacking(&figure));
                result.verified = Some(false);
                result.figures.push(figure);
            }
            let verified = ended == ProcessEnd::Exited(0) && result.verified == Some(true);
            return Ok((verified, serde_json::to_string(&result).unwrap_or_default()));
        }
        (ProcessEnd::Exited(0), Err(why)) => return Err(format!("it left no result: {why}")),
        // The parent of a job's processes lives on when one of them is killed.
        (ProcessEnd::Exited(status), _) if status == i32::from(NO_TEAM) => machine
            .killed_for_memory(killed_before)
            .unwrap_or_else(|| format!("it ended with status {status}")),
        (ProcessEnd::Exited(status), _) => format!("it ended with status {status}"),
        (ProcessEnd::Killed(signal), _) => {
            let memory = || machine.killed_for_memory(killed_before);
            let memory = (signal == libc::SIGKILL).then(memory).flatten();
            memory.unwrap_or_else(|| format!("it was killed by signal {signal}"))
        }
    };
    Err(format!("{how}: {}", machine.last_output(name, LAST_WORDS)))
}

/// Compares the CPU time that a program was charged with the CPU time that its work takes; `None` if the program can have done its
/// work.
fn lacking_work(work: CpuTime) -> Option<Figure> {
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let figure = Figure {
        name: "CPU time that the kernel counted, s".to_owned(),
        computed: seconds(work.charged),
        reference: Some(seconds(work.due)),
        tolerance: MAY_LACK,
    };
    (work.charged < work.due && figure.verified() == Some(false)).then_some(figure)
}

fn describe_lacking(lacking: &Figure) -> String {
    let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let due = ms(lacking.reference.unwrap_or_default());
    format!(
        "it ended after {} of CPU time, and its work takes {due}: its answer is not believed; \
         --task-program has to take --cpu-time as dormouse-task does",
        ms(lacking.computed)
    )
}

/// Describes a new kill of a process of the VM by the kernel for lack of memory; `None` if there is none. A kill is new if it is
/// beyond `killed_before` and not reported yet. If the kernel doesn't count such kills, only the end of the process is known.
pub(crate) fn for_want_of_memory(groups: &cgroup::VmGroups, killed_before: u64) -> Option<String> {
    let lost = groups.has_lost_one_for_memory(killed_before).unwrap_or(false);
    lost.then(|| killed_for_memory(groups.memory_limit()))
}

fn killed_for_memory(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => {
            format!("it was killed because memory was short: its VM has {}", Bytes::new(limit))
        }
        None => "it was killed because memory was short: the host has no more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_long_before_its_time_is_not_believed() {
        const MS: u64 = 1_000_000;
        let of = |charged, due| lacking_work(CpuTime { charged: charged * MS, due: due * MS });
        let early = of(4, 2571);
        assert_eq!(early.as_ref().and_then(Figure::verified), Some(false));
        let said = early.map(|figure| describe_lacking(&figure)).unwrap_or_default();
        assert!(said.contains("4 ms of CPU time, and its work takes 2571 ms"), "{said}");
        assert!(of(2400, 2571).is_none() && of(9000, 2571).is_none() && of(0, 0).is_none());
    }

    #[test]
    fn want_of_memory_is_no_signal() {
        let short = "it was killed because memory was short: its VM has 512 MiB";
        assert_eq!(killed_for_memory(Some(512 << 20)), short);
        assert!(killed_for_memory(None).ends_with("the host has no more"));
    }
}
