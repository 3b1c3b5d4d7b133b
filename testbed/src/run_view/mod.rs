//! One view of a run, whatever work it has: built once from what came out, and written as text for
//! a terminal, a page, a chart, tables, a summary, a trace.

mod bag;
mod emulation;
mod jobs;
mod machine;
mod outcome;
mod sections;
mod summary;
mod tables;
mod value;
mod vms;

pub use outcome::Outcome;
pub use value::{Line, RunView};
