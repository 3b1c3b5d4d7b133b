//! What came of a program that ended.

use std::fs;

use dormouse_tasks::result::TaskResult;

use super::{host::Host, launch::RESULT, report::explain};
use crate::{process::Ended, workspace::TaskName};

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
        (Ended::Killed(signal), _) => format!("it was killed by signal {signal}"),
    };
    let words = fs::read(directory.join("stderr")).unwrap_or_default();
    let tail = words.get(words.len().saturating_sub(LAST_WORDS)..).unwrap_or_default();
    Err(format!("{how}: {}", String::from_utf8_lossy(tail).trim()))
}
