//! A batch run in virtual time.

use std::path::Path;

use dormouse_engine::DecisionDigest;
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
    let (mut told, mut digest) = (Told::default(), DecisionDigest::default());
    let simulation = header.experiment.simulation(header.machine);
    let mut world = Modelled::new(simulation.law());
    simulate_on(&mut world, jobs.by_ref(), &simulation, |step| {
        log.step(step)?;
        step.decisions.iter().for_each(|decision| digest.add(step.at, decision));
        told.see(step, &mut recorder)
    })?;
    log.finish()?;
    let mut outcome = recorder.finish(header, digest.hex())?;
    outcome.most_in_system = Some(told.totals().most_in_system);
    outcome.skipped = jobs.skipped();
    Ok(outcome)
}
