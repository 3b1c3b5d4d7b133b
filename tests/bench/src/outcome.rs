//! The outcome of running a benchmark.

use dormouse_samples::Line;

/// The outcome of running a benchmark, before its figures are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Name of the benchmark.
    pub benchmark: String,
    /// The lines that the benchmark reported.
    pub lines: Vec<Line>,
    /// Why the benchmark was not run or failed, with the remedy; `None` if it ended well.
    pub failure: Option<String>,
}
