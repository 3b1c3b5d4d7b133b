//! Runs of parallel jobs: in virtual time from a stream of submissions, and what their steps tell.

mod observer;
mod record;
mod simulate;

pub use observer::{Observer, Told};
pub use record::{Record, Totals};
pub use simulate::{Simulation, SimulationError, Submissions, simulate, simulate_on};
