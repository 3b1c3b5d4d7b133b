//! Parallel jobs in virtual time, with a record of them.

use dormouse_engine::jobs::{Simulation, SimulationError};
use dormouse_model::{Step, Submission};

use crate::Record;

/// Plays all submissions, in order of submission, to the end on a modelled machine; `see` is shown every step, and the
/// record that has taken it in. What it holds is the jobs in the system. Gives the record at the end.
///
/// # Errors
///
/// Whatever the stream or `see` reports, a job that can't be taken, submissions out of order, or a
/// schedule that never ends.
pub fn simulate<E>(
    submissions: impl IntoIterator<Item = Result<Submission, E>>,
    simulation: &Simulation,
    mut see: impl FnMut(&Record, &Step) -> Result<(), E>,
) -> Result<Record, SimulationError<E>> {
    let mut record = Record::new(&simulation.setup()).forgetting().without_attempts();
    dormouse_engine::jobs::simulate(submissions, simulation, |step| {
        record.see(step);
        see(&record, step)
    })?;
    Ok(record)
}
