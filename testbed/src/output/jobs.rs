//! What a run that a bag shares with parallel jobs says of the jobs.

use serde_json::Value;

/// What came of the jobs of a shared run.
#[derive(Clone, Debug)]
pub struct JobsPart {
    /// Their part of `summary.json`.
    pub summary: Value,
    /// When and where the first of them ran, an SVG document.
    pub gantt: String,
    /// A line for people.
    pub line: String,
    /// All that were submitted have ended.
    pub complete: bool,
}
