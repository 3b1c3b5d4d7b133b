//! A batch run in virtual time.

use std::path::Path;

use dormouse_engine::drive::Modelled;
use dormouse_engine::jobs::{Told, simulate_on};

use super::log::{BatchHeader, BatchLogWriter};
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
    let mut log = BatchLogWriter::begin(folder, header)?;
    log.expect(jobs.expected().unwrap_or(0))?;
    let mut recorder = Recorder::begin(folder, header)?;
    let mut told = Told::default();
    let simulation = header.experiment.simulation(header.machine);
    let mut world = Modelled::new(simulation.law());
    let run = simulate_on(&mut world, jobs.by_ref(), &simulation, |step| {
        log.step(step)?;
        told.see(step, &mut recorder)
    })?;
    log.finish()?;
    let mut outcome = recorder.finish(header, run.digest())?;
    outcome.most_in_system = Some(told.totals().most_in_system);
    outcome.skipped = jobs.skipped();
    Ok(outcome)
}
