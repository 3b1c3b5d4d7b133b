//! Ours beside a paper's figure: what every paper's folder does alike.

use std::fmt::Write as _;

use dormouse_workload::Estimate;

/// A figure further than this from the paper's, relative to it, deviates.
pub const DEVIATION: f64 = 0.15;

/// `table.csv`: a line for each figure.
#[derive(Debug)]
pub(super) struct TableCsv(String);

impl TableCsv {
    /// Only its head.
    pub(super) fn new() -> Self {
        Self("case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n".to_owned())
    }

    /// Adds a figure; `paper` is empty where the paper has none.
    pub(super) fn add(&mut self, case: &str, metric: &str, paper: &str, ours: Estimate) {
        let Estimate { mean, ci95, n, .. } = ours;
        let end = |end: f64| format!("{end:.6}");
        let (low, high) = ci95.map_or_else(Default::default, |(l, h)| (end(l), end(h)));
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "{case},{metric},{paper},{mean:.6},{low},{high},{n}");
    }

    /// The file's content.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}
