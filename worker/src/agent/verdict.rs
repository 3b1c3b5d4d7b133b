//! What came of a program that ended.

use std::fs;

use dormouse_tasks::{cli::NO_TEAM, result::TaskResult};
use dormouse_units::Bytes;

use super::{host::Host, launch::RESULT, report::explain};
use crate::{cgroup, process::Ended, workspace::TaskName};

/// How much of what a failed program wrote goes into a report, in bytes.
const LAST_WORDS: usize = 400;

/// Whether its answer is right, and the answer as JSON. When it began, so many processes of its VM had
/// been killed for want of memory.
///
/// # Errors
/// Why there is none, with its last words.
pub(crate) fn verdict(
    host: &Host,
    name: &TaskName,
    ended: Ended,
    (groups, killed_before): (&cgroup::Vm, u64),
) -> Result<(bool, String), String> {
    let directory = host.workspace().task(name);
    let how = match (ended, TaskResult::read(&directory.join(RESULT))) {
        (Ended::Exited(0 | 1 | 3), Ok(result)) => {
            let verified = ended == Ended::Exited(0) && result.verified == Some(true);
            return Ok((verified, serde_json::to_string(&result).unwrap_or_default()));
        }
        (Ended::Exited(0), Err(error)) => {
            return Err(format!("it left no result: {}", explain(&error)));
        }
        // The parent of a job's processes lives on when one of them is killed.
        (Ended::Exited(status), _) if status == i32::from(NO_TEAM) => {
            for_want_of_memory(groups, killed_before)
                .unwrap_or_else(|| format!("it ended with status {status}"))
        }
        (Ended::Exited(status), _) => format!("it ended with status {status}"),
        (Ended::Killed(signal), _) => {
            let memory = || for_want_of_memory(groups, killed_before);
            let memory = (signal == libc::SIGKILL).then(memory).flatten();
            memory.unwrap_or_else(|| format!("it was killed by signal {signal}"))
        }
    };
    let words = fs::read(directory.join("stderr")).unwrap_or_default();
    let tail = words.get(words.len().saturating_sub(LAST_WORDS)..).unwrap_or_default();
    Err(format!("{how}: {}", String::from_utf8_lossy(tail).trim()))
}

/// In words, that the kernel has killed a process of a VM for want of memory since it had killed so
/// many of them, of which nobody was told yet. Where the kernel does not count such kills, what is seen
/// of the process is all that is known.
pub(crate) fn for_want_of_memory(groups: &cgroup::Vm, killed_before: u64) -> Option<String> {
    let lost = groups.has_lost_one_for_memory(killed_before).unwrap_or(false);
    lost.then(|| killed_for_memory(groups.memory_limit()))
}

fn killed_for_memory(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => {
            format!("it was killed for want of memory: its VM has {}", Bytes::new(limit))
        }
        None => "it was killed for want of memory: the host has no more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_is_no_signal() {
        let short = "it was killed for want of memory: its VM has 512 MiB";
        assert_eq!(killed_for_memory(Some(512 << 20)), short);
        assert!(killed_for_memory(None).ends_with("the host has no more"));
    }
}
