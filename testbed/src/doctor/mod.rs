//! `dormouse doctor`: what this host can do, and what to fix.

mod criu;
mod examine;
mod finding;
mod groups;
mod kernel;
mod required;
mod resources;

pub use criu::criu_program;
pub use examine::{Diagnosis, examine};
pub use finding::{Finding, State};
pub(crate) use required::lacking;
