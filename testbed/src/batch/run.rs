//! A batch run in virtual time.

use std::path::Path;

use dormouse_batch::simulate;

use super::log::BatchHeader;
use super::recorder::Recorder;
use super::{BatchError, BatchOutcome, Jobs};

/// Runs the experiment of `header` on `jobs`, and leaves what is written while it goes in
/// `folder`.
///
/// # Errors
///
/// See [`BatchError`].
pub fn virtual_run<'a>(
    header: &'a BatchHeader,
    mut jobs: Jobs,
    folder: &Path,
) -> Result<BatchOutcome<'a>, BatchError> {
    let mut recorder = Recorder::begin(folder, header, jobs.expected())?;
    let totals = simulate(jobs.by_ref(), &header.experiment.setup(header.machine), &mut recorder)?;
    let mut outcome = recorder.finish(header)?;
    outcome.most_in_system = Some(totals.most_in_system);
    outcome.skipped = jobs.skipped();
    Ok(outcome)
}
