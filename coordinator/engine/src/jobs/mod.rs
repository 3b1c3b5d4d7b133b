//! Runs of parallel jobs in virtual time, from a stream of submissions.

mod simulate;

pub use simulate::{JobSimulation, SimulationError, SubmissionEvents, simulate_jobs, simulate_on};
