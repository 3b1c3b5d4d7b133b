//! Distribution of the differences in duration between a run and its twin.

use serde::Serialize;

use super::{TaskStanding, TwinTask};

/// Differences of tasks' durations as parts of the twin's: -0.01 means 1 % less time live than in the twin.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "SpreadInJson")]
pub struct DurationSpread {
    /// Differences between the tasks' durations in the run and in the twin, as fractions of the twin's, in increasing order; at
    /// least one.
    sorted: Vec<f64>,
}

#[derive(Serialize)]
struct SpreadInJson {
    tasks: usize,
    mean: f64,
    shortest: f64,
    longest: f64,
    past_5_percent: usize,
}

impl From<DurationSpread> for SpreadInJson {
    fn from(of: DurationSpread) -> Self {
        Self {
            tasks: of.tasks(),
            mean: of.mean(),
            shortest: of.shortest(),
            longest: of.longest(),
            past_5_percent: of.past_5_percent(),
        }
    }
}

/// A task counts as deviating if it takes longer or shorter than in the twin by more than this fraction.
const PAST: f64 = 0.05;

/// Borders of the bins of the distribution, as parts of the durations in the twin.
const BORDERS: [f64; 6] = [-0.05, -0.03, -0.01, 0.01, 0.03, 0.05];

impl DurationSpread {
    /// The spread of these differences in duration (fractions of the twin's durations); `None` if there are none.
    #[must_use]
    pub fn from_differences(differences: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = differences.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Self { sorted })
    }

    /// The spread of the duration differences of the tasks with this [`TaskStanding`]; `None` if no such task has a known
    /// difference.
    pub(super) fn of_those(rows: &[TwinTask], standing: &TaskStanding) -> Option<Self> {
        let rows = rows.iter().filter(|row| row.standing == *standing);
        Self::from_differences(rows.filter_map(|row| row.difference))
    }

    /// Number of tasks that were compared.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.sorted.len()
    }

    /// Mean of the tasks' differences in duration, as parts of the twin's.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of tasks")]
    pub fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.sorted.len() as f64
    }

    /// Smallest of the tasks' differences in duration, as a part of the twin's.
    #[must_use]
    pub fn shortest(&self) -> f64 {
        self.sorted.first().copied().unwrap_or_default()
    }

    /// Largest of the tasks' differences in duration, as a part of the twin's.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.sorted.last().copied().unwrap_or_default()
    }

    /// Difference in duration that is furthest from zero, as an absolute part of the twin's.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.longest().abs().max(self.shortest().abs())
    }

    /// Number of tasks that took more than 5 % more or less time than in the twin.
    #[must_use]
    pub fn past_5_percent(&self) -> usize {
        self.sorted.iter().filter(|x| x.abs() > PAST).count()
    }

    /// Name and count of each bin: below the first border, between two borders, above the last.
    #[must_use]
    pub fn bins(&self) -> Vec<(String, usize)> {
        let mut from = 0;
        let mut bins = Vec::new();
        for (n, border) in BORDERS.iter().enumerate() {
            let until = self.sorted.partition_point(|x| x < border);
            let name = match n.checked_sub(1) {
                None => format!("below {:+.0} %", border * 100.0),
                Some(n) => format!("{:+.0} to {:+.0}", BORDERS[n] * 100.0, border * 100.0),
            };
            bins.push((name, until - from));
            from = until;
        }
        bins.push(("above".to_owned(), self.sorted.len() - from));
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_its_differences() {
        assert_eq!(DurationSpread::from_differences([]), None);
        let spread =
            DurationSpread::from_differences([0.02, -0.06, 0.0, 0.051, -0.05]).expect("some");
        assert_eq!((spread.tasks(), spread.past_5_percent()), (5, 2));
        assert_eq!((spread.shortest(), spread.longest(), spread.worst()), (-0.06, 0.051, 0.06));
        assert!((spread.mean() - (0.02 - 0.06 + 0.051 - 0.05) / 5.0).abs() < 1e-12);
        let bins: Vec<_> = spread.bins().into_iter().map(|(_, n)| n).collect();
        assert_eq!(bins, [1, 1, 0, 1, 1, 0, 1]);
    }
}
