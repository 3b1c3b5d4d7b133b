//! Workloads that a model generates.

use dormouse_model::Submission;

use crate::{Estimates, Model, Shape, WorkloadError, tsafrir_estimates};

/// Generates `jobs` jobs by a model for `machine` processors, as the model submits them: load and
/// CPU usage are set elsewhere.
///
/// Estimates are limited like the runs, as under a queue's limit: 18 h for fw-like and jw-like.
///
/// # Errors
///
/// The models can't generate so many jobs, or any for such a machine.
pub(super) fn generate_jobs(
    model: Model,
    shape: Shape,
    (jobs, machine): (usize, u32),
    estimates: Estimates,
    seed: u64,
) -> Result<Vec<Submission>, WorkloadError> {
    let (mut list, longest) = match model.targets().map(|targets| shape.apply(targets)) {
        Some(targets) => (targets.generate(jobs, machine, seed)?, targets.longest),
        None => (model.generate(jobs, machine, seed)?, model.longest()),
    };
    if estimates == Estimates::Tsafrir {
        tsafrir_estimates(&mut list, longest, seed)?;
    }
    Ok(list)
}
