//! What came of a program that ended.

use std::fs;

use dormouse_tasks::result::TaskResult;
use dormouse_units::Bytes;

use super::{host::Host, launch::RESULT, report::explain};
use crate::{cgroup, process::Ended, workspace::TaskName};

/// How much of what a failed program wrote goes into a report, in bytes.
const LAST_WORDS: usize = 400;

/// Whether its answer is right, and the answer as JSON.
///
/// # Errors
/// Why there is none, with its last words.
pub(crate) fn verdict(
    host: &Host,
    name: &TaskName,
    ended: Ended,
    groups: &cgroup::Vm,
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
        (Ended::Exited(status), _) => format!("it ended with status {status}"),
        (Ended::Killed(signal), _) => {
            // Where the kernel does not count such kills, the signal is all that is known.
            let for_memory =
                signal == libc::SIGKILL && groups.has_lost_one_for_memory().unwrap_or(false);
            killed(signal, for_memory, groups.memory_limit())
        }
    };
    let words = fs::read(directory.join("stderr")).unwrap_or_default();
    let tail = words.get(words.len().saturating_sub(LAST_WORDS)..).unwrap_or_default();
    Err(format!("{how}: {}", String::from_utf8_lossy(tail).trim()))
}

fn killed(signal: i32, for_memory: bool, limit: Option<u64>) -> String {
    match (for_memory, limit) {
        (false, _) => format!("it was killed by signal {signal}"),
        (true, Some(limit)) => {
            format!("it was killed for want of memory: its VM has {}", Bytes::new(limit))
        }
        (true, None) => "it was killed for want of memory: the host has no more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_is_no_signal() {
        assert_eq!(killed(9, false, Some(1 << 30)), "it was killed by signal 9");
        let short = "it was killed for want of memory: its VM has 512 MiB";
        assert_eq!(killed(9, true, Some(512 << 20)), short);
        assert!(killed(9, true, None).ends_with("the host has no more"));
    }
}
