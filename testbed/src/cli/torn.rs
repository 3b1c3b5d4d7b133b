//! Logs without a last line.

use std::path::Path;

use super::failure::Failure;
use crate::output::is_unfinished;

/// Says on standard error that the last line of a run's log is torn, if it is, and left out.
///
/// # Errors
///
/// The run came to its end, so that its log was whole once.
pub(crate) fn say_torn(dir: &Path, torn: bool) -> Result<(), Failure> {
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
