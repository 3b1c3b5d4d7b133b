//! Runs of parallel jobs in virtual time, from a stream of submissions.

mod simulate;

pub use simulate::{Simulation, SimulationError, Submissions, simulate, simulate_on};
