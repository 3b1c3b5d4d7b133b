//! Samples of every cell, and figures from them.

use std::collections::BTreeMap;

use dormouse_analysis::{RunSample, series};
use dormouse_estimate::{Estimate, Series, rises};

/// Figure whose batches tell whether a load is saturated.
const RESPONSE: &str = "response_s";

/// Samples of every cell of a reproduction, with figures and cells that a reading replaces.
#[derive(Clone, Debug, Default)]
pub struct CellResults {
    samples: BTreeMap<String, Vec<RunSample>>,
    /// For the name of each replaced figure, the name of the figure that is read in its place.
    instead: BTreeMap<String, String>,
    /// For the name of each replaced cell, the name of the cell that is read in its place.
    stand_ins: BTreeMap<String, String>,
    /// Whether the results are of a trial, which resamples no record.
    is_trial: bool,
}

impl CellResults {
    /// The results with the given samples, by cell.
    pub(super) fn new(samples: impl IntoIterator<Item = (String, Vec<RunSample>)>) -> Self {
        Self { samples: samples.into_iter().collect(), ..Self::default() }
    }

    /// Replaces some figures and cells by others.
    pub(super) fn with(
        self,
        instead: BTreeMap<String, String>,
        stand_ins: BTreeMap<String, String>,
    ) -> Self {
        Self { instead, stand_ins, ..self }
    }

    /// Marks the results as a trial: no record is resampled, and intervals don't cover that uncertainty.
    pub(super) fn of_trial(self) -> Self {
        Self { is_trial: true, ..self }
    }

    /// Whether the results are of a trial of a factor, for which no record is resampled.
    pub(super) const fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// The samples of a cell, or of the cell that replaces it; `None` if there are no such samples.
    pub fn samples(&self, case: &str) -> Option<&[RunSample]> {
        let case = self.stand_ins.get(case).map_or(case, String::as_str);
        self.samples.get(case).map(Vec::as_slice)
    }

    /// Number of samples in all cells.
    pub fn count(&self) -> usize {
        self.samples.values().map(Vec::len).sum()
    }

    /// A figure in a cell, sample by sample; `None` if the cell has no samples. Batches that rise have no interval.
    pub(super) fn series(&self, case: &str, metric: &str) -> Option<Series> {
        let metric = self.instead.get(metric).map_or(metric, String::as_str);
        let samples = self.samples(case)?;
        let series = series(samples, metric);
        let responses = samples.first().and_then(|sample| sample.batches.get(RESPONSE));
        let is_saturated = series.are_batches && responses.is_some_and(|means| rises(means));
        Some(Series { is_saturated, ..series })
    }

    /// Estimate of a figure in a cell; `None` if no run has it.
    pub fn ours(&self, case: &str, metric: &str) -> Option<Estimate> {
        self.series(case, metric)?.estimate()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Results with the given values of one figure in each cell, one value for each run.
    pub(in crate::papers) fn of_runs(metric: &str, cells: &[(&str, &[f64])]) -> CellResults {
        let sample = |x: &f64| RunSample {
            figures: [(metric.to_owned(), *x)].into(),
            batches: BTreeMap::new(),
            steps: 0,
            decisions: String::new(),
        };
        let cell = |(case, values): &(&str, &[f64])| {
            ((*case).to_owned(), values.iter().map(sample).collect())
        };
        CellResults::new(cells.iter().map(cell))
    }

    #[test]
    fn a_cell_and_a_figure_may_stand_for_others() {
        let results = of_runs("x", &[("a", &[1.0]), ("b", &[2.0])]);
        let pair = |of: &str, other: &str| [(of.to_owned(), other.to_owned())].into();
        let read = results.with(pair("y", "x"), pair("a", "b"));
        let ours = |case, metric| read.ours(case, metric).map(|ours| ours.mean);
        assert_eq!([ours("a", "x"), ours("b", "x"), ours("a", "y")], [Some(2.0); 3]);
        assert_eq!(ours("a", "z"), None);
    }

    #[test]
    fn batches_that_rise_are_of_a_saturated_load() {
        let of = |means: Vec<f64>| RunSample {
            figures: BTreeMap::new(),
            batches: [(RESPONSE.to_owned(), means)].into(),
            steps: 0,
            decisions: String::new(),
        };
        let cell = |case: &str, means| (case.to_owned(), vec![of(means)]);
        let grows = (0..20).map(f64::from).collect();
        let results = CellResults::new([cell("a", grows), cell("b", vec![1.0; 20])]);
        let [a, b] = ["a", "b"].map(|case| results.ours(case, RESPONSE).expect("it is there"));
        assert!(a.is_saturated && a.ci95.is_none(), "{a:?}");
        assert!(!b.is_saturated && b.ci95.is_some(), "{b:?}");
    }
}
