//! Runs parallel jobs in virtual time and keeps a record of them.

use dormouse_engine::jobs::{JobSimulation, SimulationError};
use dormouse_model::{Step, Submission};

use crate::RunRecord;

/// Runs all submissions, in order of submission, to the end on a modelled machine, and returns the
/// final record. `see` gets every step, with the record after the step. Memory grows only with the
/// number of jobs in the system.
///
/// # Errors
///
/// Whatever the stream or `see` reports, a job that the machine can't run, submissions out of
/// order, or a schedule that never ends.
pub fn simulate<E>(
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    simulation: &JobSimulation,
    mut see: impl FnMut(&RunRecord, &Step) -> Result<(), E>,
) -> Result<RunRecord, SimulationError<E>> {
    let mut record = RunRecord::new(&simulation.make_setup()).forgetting().without_attempts();
    dormouse_engine::jobs::simulate_jobs(submissions, simulation, |step| {
        record.see(step);
        see(&record, step)
    })?;
    Ok(record)
}
