//! What live runs need of this host: found or missing, and how to fix it.

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
pub use required::lacking;
pub use resources::find_task_program;
