//! The samples of cells as figures: one number for each independent sample.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_estimate::{Estimate, jackknife, rises};

use super::paper::Measure;
use crate::sweep::{Sample, values};

/// The batches that tell whether a load is saturated.
const RESPONSE: &str = "response_s";

/// The samples of every cell.
#[derive(Clone, Debug, Default)]
pub struct Results {
    samples: BTreeMap<String, Vec<Sample>>,
    /// Figures that others are taken for.
    instead: BTreeMap<String, String>,
}

/// A figure's values: one for each run, or for each batch of a single run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    /// `None`: the run has no such figure, such as the makespan of one that was never done.
    pub(super) each: Vec<Option<f64>>,
    batches: bool,
    /// Of a queue that grows: without a steady state, and so without an interval.
    pub(super) saturated: bool,
}

/// A mean, and whether it lacks an interval because a load is saturated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ours {
    /// The estimate.
    pub estimate: Estimate,
    /// Whether it is of a saturated load.
    pub saturated: bool,
}

impl Results {
    /// These cells with their samples.
    pub(super) fn new(samples: BTreeMap<String, Vec<Sample>>) -> Self {
        Self { samples, instead: BTreeMap::new() }
    }

    /// The same with other figures in place of some.
    pub(super) fn with(self, instead: BTreeMap<String, String>) -> Self {
        Self { instead, ..self }
    }

    /// The samples of a cell.
    #[must_use]
    pub fn samples(&self, case: &str) -> Option<&[Sample]> {
        self.samples.get(case).map(Vec::as_slice)
    }

    /// All cells.
    #[must_use]
    pub fn cases(&self) -> BTreeSet<&str> {
        self.samples.keys().map(String::as_str).collect()
    }

    /// All samples.
    pub fn all(&self) -> impl Iterator<Item = &Sample> {
        self.samples.values().flatten()
    }

    /// Whether a cell's load is saturated.
    #[must_use]
    pub fn is_saturated(&self, case: &str) -> bool {
        let one = self.samples(case).filter(|samples| samples.len() == 1);
        one.and_then(|samples| samples[0].batches.get(RESPONSE)).is_some_and(|means| rises(means))
    }

    /// A figure's values in a cell: of the batches where it is a single run that has them.
    pub(super) fn values(&self, case: &str, metric: &str) -> Option<Values> {
        let metric = self.instead.get(metric).map_or(metric, String::as_str);
        let (each, batches) = values(self.samples(case)?, metric);
        let saturated = batches && self.is_saturated(case);
        Some(Values { each, batches, saturated })
    }

    /// A figure's mean in a cell; `None` where no run has it.
    #[must_use]
    pub fn ours(&self, case: &str, metric: &str) -> Option<Ours> {
        self.values(case, metric)?.ours()
    }
}

impl Values {
    /// Their mean, with its interval where they have one.
    pub(super) fn ours(&self) -> Option<Ours> {
        let there: Vec<f64> = self.each.iter().flatten().copied().collect();
        let estimate = Estimate::of(&there)?;
        let ci95 = estimate.ci95.filter(|_| !self.saturated);
        Some(Ours { estimate: Estimate { ci95, ..estimate }, saturated: self.saturated })
    }

    /// What two cells come to, sample by sample: runs under the same seed, or batches of the same
    /// jobs. A ratio of batches is that of their sums, whose values are the jackknife's; one of runs
    /// is that of each pair. `None` where they have not the same samples.
    pub(super) fn compared(&self, other: &Self, measure: Measure) -> Option<Self> {
        if self.each.len() != other.each.len() || self.batches != other.batches {
            return None;
        }
        let statistic = |[of, than]: [f64; 2]| match measure {
            Measure::Less => than - of,
            Measure::Ratio => of / than,
            Measure::PercentAbove => 100.0 * (of / than - 1.0),
            Measure::PercentBelow | Measure::Value | Measure::BreakEven => {
                100.0 * (1.0 - of / than)
            }
        };
        let saturated = self.saturated || other.saturated;
        let each = if self.batches {
            let of: Vec<f64> = self.each.iter().flatten().copied().collect();
            let than: Vec<f64> = other.each.iter().flatten().copied().collect();
            jackknife([&of, &than], statistic).into_iter().map(Some).collect()
        } else {
            let pairs = self.each.iter().zip(&other.each);
            pairs.map(|(of, than)| Some(statistic([(*of)?, (*than)?]))).collect()
        };
        Some(Self { each, batches: self.batches, saturated })
    }

    /// The mean of several, sample by sample: comparisons of the same jobs at several loads are not
    /// independent, so that the samples stay the batches. `None` where they have not the same samples.
    pub(super) fn mean_of(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        if all.iter().any(|v| v.each.len() != first.each.len() || v.batches != first.batches) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
        let count = all.len() as f64;
        let mean = |n: usize| {
            let sum: Option<f64> = all.iter().map(|values| values.each[n]).sum();
            Some(sum? / count)
        };
        let saturated = all.iter().any(|values| values.saturated);
        let each = (0..first.each.len()).map(mean).collect();
        Some(Self { each, batches: first.batches, saturated })
    }

    /// All values of several cells, which have to be independent.
    pub(super) fn pooled(all: Vec<Self>) -> Self {
        let saturated = all.iter().any(|values| values.saturated);
        let each = all.into_iter().flat_map(|values| values.each).collect();
        Self { each, batches: false, saturated }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Results whose cells have these values of one figure, a run each.
    pub(in crate::papers) fn of_runs(metric: &str, cells: &[(&str, &[f64])]) -> Results {
        let sample = |x: &f64| Sample {
            figures: [(metric.to_owned(), *x)].into(),
            batches: BTreeMap::new(),
            steps: 0,
            decisions: String::new(),
        };
        let cell = |(case, values): &(&str, &[f64])| {
            ((*case).to_owned(), values.iter().map(sample).collect())
        };
        Results::new(cells.iter().map(cell).collect())
    }

    /// The same of the batches of one run.
    pub(in crate::papers) fn of_batches(metric: &str, cells: &[(&str, &[f64])]) -> Results {
        let cell = |(case, means): &(&str, &[f64])| {
            let batches = [(metric.to_owned(), means.to_vec())].into();
            let (steps, decisions) = (0, String::new());
            let sample = Sample { figures: BTreeMap::new(), batches, steps, decisions };
            ((*case).to_owned(), vec![sample])
        };
        Results::new(cells.iter().map(cell).collect())
    }

    fn values(results: &Results, case: &str) -> Values {
        results.values(case, "x").expect("it is there")
    }

    #[test]
    fn runs_are_compared_pair_by_pair_and_batches_by_their_sums() {
        let cells: [(&str, &[f64]); 2] = [("a", &[1.0, 3.0]), ("b", &[2.0, 4.0])];
        let runs = of_runs("x", &cells);
        let below = values(&runs, "a").compared(&values(&runs, "b"), Measure::PercentBelow);
        assert_eq!(below.expect("pairs").each, [Some(50.0), Some(25.0)]);
        let batches = of_batches("x", &cells);
        let below = values(&batches, "a").compared(&values(&batches, "b"), Measure::PercentBelow);
        // 2 · (1 − 4/6) minus what is left without each of them.
        let ours = below.and_then(|b| b.ours()).expect("pairs").estimate;
        assert!((ours.mean - (200.0 / 3.0 - 37.5)).abs() < 1e-9, "{ours:?}");
        assert_eq!(values(&runs, "a").compared(&values(&batches, "b"), Measure::Less), None);
    }

    /// The same comparison seven times says no more than once.
    #[test]
    fn loads_of_the_same_jobs_are_not_independent() {
        let of = values(&of_batches("x", &[("a", &[1.0, 5.0, 2.0])]), "a");
        let seven = Values::mean_of(&vec![of.clone(); 7]).expect("the same batches");
        assert_eq!(seven.ours().map(|o| o.estimate.n), Some(3));
        assert_eq!(seven.ours(), of.ours());
    }

    #[test]
    fn a_saturated_load_has_no_interval_and_what_is_made_of_it_neither() {
        let grows: Vec<f64> = (0..20).map(f64::from).collect();
        let results = of_batches(RESPONSE, &[("a", &grows), ("b", &[1.0; 20])]);
        let ours = |case| results.ours(case, RESPONSE).expect("it is there");
        assert!(results.is_saturated("a") && ours("a").saturated);
        assert_eq!(ours("a").estimate.ci95, None);
        assert!(!ours("b").saturated && ours("b").estimate.ci95.is_some());
        let [a, b] = ["a", "b"].map(|case| results.values(case, RESPONSE).expect("it is there"));
        let less = b.compared(&a, Measure::Less).and_then(|v| v.ours()).expect("batches");
        assert!(less.saturated && less.estimate.ci95.is_none());
    }
}
