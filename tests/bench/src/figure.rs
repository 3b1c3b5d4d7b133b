//! A figure of a record: its value, its peer's value, and the ratio between them.

use dormouse_samples::{Better, Line, median};
use serde::{Deserialize, Serialize};

use crate::benchmarks::Bound;

/// A measured figure with its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the benchmark that measured the figure.
    pub benchmark: String,
    /// Name of the figure.
    pub name: String,
    /// Description of the figure.
    pub what: String,
    /// Unit of the value and of the peer's value.
    pub unit: String,
    /// Whether a smaller or a larger value is better.
    pub better: Better,
    /// The measured values of the figure.
    pub value: Spread,
    /// What the figure is compared with.
    pub peer: String,
    /// The measured values of the peer.
    pub peer_value: Spread,
    /// How many times worse than its peer the figure is: below 1 where it is better. The median over pairs of
    /// samples; where there are no pairs, of the two medians, with the least and the greatest that can be.
    pub ratio: Spread,
    /// Recorded bound of the ratio.
    pub bound: f64,
    /// The worst ratio allowed: above it, the figure is a finding.
    pub worst: f64,
    /// Number of samples of the figure.
    pub repetitions: usize,
}

/// The median, least and greatest of some samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median of the samples.
    pub median: f64,
    /// The least sample.
    pub min: f64,
    /// The greatest sample.
    pub max: f64,
}

impl Spread {
    fn from_samples(samples: &[f64]) -> Self {
        let ends =
            |which: fn(f64, f64) -> f64| samples.iter().copied().reduce(which).unwrap_or(f64::NAN);
        Self { median: median(samples), min: ends(f64::min), max: ends(f64::max) }
    }
}

impl Figure {
    /// The figure that a benchmark's line reports; `None` if a sample is missing or is not a number above 0, so that
    /// there is no ratio.
    #[must_use]
    pub fn new(benchmark: &str, line: &Line, bound: &Bound, tolerance: f64) -> Option<Self> {
        let is_measured = |samples: &[f64]| {
            !samples.is_empty() && samples.iter().all(|sample| sample.is_finite() && *sample > 0.0)
        };
        if !is_measured(&line.ours) || !is_measured(&line.peer) {
            return None;
        }
        let bound = bound.clone();
        Some(Self {
            benchmark: benchmark.to_owned(),
            worst: bound.worst(tolerance),
            name: bound.name,
            what: bound.what,
            unit: bound.unit,
            better: line.better,
            value: Spread::from_samples(&line.ours),
            peer: bound.peer,
            peer_value: Spread::from_samples(&line.peer),
            ratio: ratio(line),
            bound: bound.bound,
            repetitions: line.ours.len(),
        })
    }

    /// Whether the ratio is better than its bound by more than the tolerance, so that the bound could be lowered.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.ratio.median * self.worst < self.bound * self.bound
    }

    /// Whether the ratio is worse than the worst one allowed.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.ratio.median > self.worst
    }
}

/// The ratio of a line: how many times worse the figure is than its peer.
fn ratio(line: &Line) -> Spread {
    let worse = |ours: f64, peer: f64| match line.better {
        Better::Less => ours / peer,
        Better::More => peer / ours,
    };
    if line.ours.len() == line.peer.len() {
        let pairs = line.ours.iter().zip(&line.peer);
        return Spread::from_samples(
            &pairs.map(|(ours, peer)| worse(*ours, *peer)).collect::<Vec<_>>(),
        );
    }
    let (ours, peer) = (Spread::from_samples(&line.ours), Spread::from_samples(&line.peer));
    let ends = [worse(ours.min, peer.max), worse(ours.max, peer.min)];
    Spread { median: worse(ours.median, peer.median), ..Spread::from_samples(&ends) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bound(name: &str, bound: f64) -> Bound {
        Bound {
            name: name.to_owned(),
            what: "what it is".to_owned(),
            unit: "ms".to_owned(),
            peer: "a peer".to_owned(),
            bound,
            reason: "measured".to_owned(),
            tolerance: None,
        }
    }

    pub(crate) fn line(name: &str, better: Better, ours: &[f64], peer: &[f64]) -> Line {
        Line { name: name.to_owned(), better, ours: ours.to_vec(), peer: peer.to_vec() }
    }

    fn ratio_of(better: Better, ours: &[f64], peer: &[f64]) -> Option<Spread> {
        Figure::new("b", &line("x", better, ours, peer), &bound("x", 1.0), 0.2)
            .map(|figure| figure.ratio)
    }

    #[test]
    fn ratios_are_of_pairs_and_greater_is_worse() {
        // The machine was twice as slow in the second round, for both.
        let costs = ratio_of(Better::Less, &[3.0, 6.0, 4.5], &[2.0, 4.0, 2.0]);
        assert_eq!(costs, Some(Spread { median: 1.5, min: 1.5, max: 2.25 }));
        let rates = ratio_of(Better::More, &[50.0, 100.0], &[100.0, 100.0]);
        assert_eq!(rates, Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
        let unpaired = ratio_of(Better::Less, &[3.0, 4.0, 5.0], &[2.0]);
        assert_eq!(unpaired, Some(Spread { median: 2.0, min: 1.5, max: 2.5 }));
    }

    #[test]
    fn what_was_not_measured_is_no_figure() {
        for (ours, peer) in [
            (&[][..], &[1.0][..]),
            (&[1.0], &[]),
            (&[0.0], &[1.0]),
            (&[1.0], &[0.0]),
            (&[f64::NAN], &[1.0]),
            (&[1.0, f64::INFINITY], &[1.0, 1.0]),
            (&[-1.0], &[1.0]),
        ] {
            assert_eq!(ratio_of(Better::Less, ours, peer), None, "{ours:?} {peer:?}");
        }
    }

    #[test]
    fn a_ratio_is_worse_beyond_its_tolerance() {
        for (ours, is_worse) in [(1.3, false), (1.31, false), (1.33, true), (0.5, false)] {
            let figure =
                Figure::new("b", &line("x", Better::Less, &[ours], &[1.0]), &bound("x", 1.1), 0.2);
            assert_eq!(figure.map(|figure| figure.is_worse()), Some(is_worse), "{ours}");
        }
        for (ours, is_better) in [(0.9, true), (0.93, false), (1.1, false), (2.0, false)] {
            let line = line("x", Better::Less, &[ours], &[1.0]);
            let figure = Figure::new("b", &line, &bound("x", 1.1), 0.2);
            assert_eq!(figure.map(|figure| figure.is_better()), Some(is_better), "{ours}");
        }
    }
}
