//! `dormouse workload generate | stats | scale`.

mod error;
mod generate;
mod options;
mod scale;
mod stats;

pub use error::CliError;
pub use generate::GenerateArgs;
pub use options::{Command, Input, run};
pub use scale::ScaleArgs;
pub use stats::StatsArgs;
