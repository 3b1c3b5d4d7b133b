//! From the folder of a run to its comparison with its twin.

use std::path::Path;

use super::{Twin, TwinError, bag, jobs};
use crate::output::RunLog;

/// Plays the run in this folder again in virtual time and compares the two.
///
/// A run of virtual time is its own twin: everything is equal then. A run that was ended before
/// its tasks were finished, by its user or a crash, has a twin that ends at the same time.
///
/// # Errors
///
/// There is no run there, or none that can be played again: see [`TwinError`].
pub fn twin_of(dir: &Path) -> Result<Twin, TwinError> {
    let log = RunLog::read(dir)?;
    log.header.check_inputs()?;
    match log.header.experiment.scheduler {
        Some(_) => bag::compared(log, dir),
        None => jobs::compared(log, dir),
    }
}
