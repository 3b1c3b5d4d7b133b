//! The benchmarks of the repository as one run: each figure beside a peer or a floor, as a ratio that is
//! compared with a recorded bound.
//!
//! [`Benchmarks`] is the file that says which benchmarks there are and how bad a ratio may be; [`run`] runs them;
//! [`verdict`] says what is wrong with what they reported; [`Record`] is what is kept of a run, and [`history`]
//! the page that shows the records of a folder.

mod benchmarks;
mod command;
mod figure;
mod history;
mod host;
mod needs;
mod outcome;
mod record;
mod run;
pub mod summary;
mod verdict;

pub use benchmarks::{Benchmark, Benchmarks, Bound, Build, InvalidBenchmarks};
pub use command::Builder;
pub use figure::{Figure, Spread};
pub use history::{PAGE, history, write_history};
pub use host::Host;
pub use needs::Need;
pub use outcome::Outcome;
pub use record::{NotRun, Record, RecordError};
pub use run::run;
pub use verdict::{Finding, Verdict, verdict};
