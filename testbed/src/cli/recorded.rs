//! Logs of runs, which may have been killed.

use std::path::Path;

use super::failure::Failure;
use crate::output::{RunLog, is_unfinished};
use crate::replay::ReplayError;

/// Reads the log of a run's folder. That its last line is torn, if it is, is said.
///
/// # Errors
///
/// It can't be read, it was whole once, or a file that the run was made of has changed since.
pub(crate) fn read_log(dir: &Path) -> Result<RunLog, Failure> {
    let log = RunLog::read(dir)?;
    log.header.check_inputs()?;
    say_torn(dir, log.torn)?;
    Ok(log)
}

/// Says on standard error that the last line of a run's log is torn, if it is, and left out.
///
/// # Errors
///
/// The run came to its end, so that its log was whole once.
fn say_torn(dir: &Path, torn: bool) -> Result<(), Failure> {
    if !torn {
        return Ok(());
    }
    if !is_unfinished(dir) {
        let log = dir.join(dormouse_log::FILE);
        return Err(Failure::BadInput(format!(
            "{}: its last line is torn, though the run came to its end; give the folder of a run \
             that was left whole",
            log.display()
        )));
    }
    let what = "the last line of its log is torn, as a kill leaves it, and is left out";
    eprintln!("dormouse: {}: {what}", dir.display());
    Ok(())
}

/// A run whose folder this is can't be made again.
pub(crate) fn not_again(dir: &Path) -> impl FnOnce(ReplayError) -> Failure {
    move |error| match error {
        ReplayError::Jobs(error) => error.into(),
        error @ ReplayError::Scheduler(_) => {
            Failure::BadInput(format!("{}: {error}", dir.display()))
        }
    }
}
