//! The Standard Workload Format, version 2.2 (Chapin et al. 1999; Parallel Workloads
//! Archive): `;` comments with `; Name: value` directives, then eighteen numbers a line.

mod header;
mod job;
mod reader;
mod rules;
mod trace;
mod writer;

pub use header::Header;
pub use job::SwfJob;
pub use reader::{Problem, Skipped, SwfError, SwfReader};
pub use rules::{Fractions, JobSize, LogRules, NoEstimate, Odd, OnMalformed, RanOver, Repeated};
pub use trace::Trace;
pub use writer::SwfWriter;
