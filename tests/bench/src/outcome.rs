//! What came of running a benchmark.

use dormouse_samples::Line;

/// What came of running a benchmark, before it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Name of the benchmark.
    pub benchmark: String,
    /// The lines that the benchmark reported.
    pub lines: Vec<Line>,
    /// Why it was not run or did not end well, with the remedy; `None` if it did.
    pub failure: Option<String>,
}
