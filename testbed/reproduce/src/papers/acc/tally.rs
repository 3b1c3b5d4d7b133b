//! Sums over jobs under each scheme.

use dormouse_spot::{Outcome, SpotScheme};

/// Number of schemes.
pub(super) const SCHEMES: usize = SpotScheme::ALL.len();

/// Index of ACC: the last scheme.
pub(super) const ACC: usize = SCHEMES - 1;

/// Summed quantities, each with a word and a figure's name: cost in dollars, time in minutes, and
/// their product in dollar hours.
pub(super) const METRICS: [(&str, &str); 3] =
    [("cost", "cost_usd"), ("time", "time_min"), ("product", "product")];

/// Sums over the jobs that all schemes finish.
#[derive(Debug, Default)]
pub(super) struct SchemeTally {
    /// Number of bids at which all schemes finish some job.
    pub(super) pairs: f64,
    /// Number of jobs that all schemes finish; a job counts once for each bid at which they do.
    pub(super) jobs: f64,
    /// Sums of the jobs' figures for each scheme.
    sums: [Sums; SCHEMES],
}

impl SchemeTally {
    pub(super) fn add(&mut self, outcomes: &[Option<Outcome>; SCHEMES], weight: f64) {
        if outcomes.iter().any(Option::is_none) {
            return;
        }
        self.jobs += weight;
        for (sums, outcome) in self.sums.iter_mut().zip(outcomes.iter().flatten()) {
            add(sums, outcome, weight);
        }
    }

    pub(super) fn join(&mut self, more: &Self) {
        self.pairs += more.pairs;
        self.jobs += more.jobs;
        let sums = self.sums.iter_mut().flatten();
        sums.zip(more.sums.iter().flatten()).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn mean(&self, scheme: usize, metric: usize) -> Option<f64> {
        (self.jobs > 0.0).then(|| self.sums[scheme][metric] / self.jobs)
    }

    /// Per cent by which ACC's mean of a metric is lower than that of a scheme; `None` if the scheme's mean is zero.
    pub(super) fn acc_under(&self, scheme: usize, metric: usize) -> Option<f64> {
        percent_below(self.sums[ACC][metric], self.sums[scheme][metric])
    }
}

/// Sums over the jobs that both a scheme and ACC finish.
#[derive(Debug, Default)]
pub(super) struct PairedTally {
    scheme: Sums,
    acc: Sums,
}

impl PairedTally {
    pub(super) fn add(&mut self, scheme: &Option<Outcome>, acc: &Option<Outcome>, weight: f64) {
        if let (Some(scheme), Some(acc)) = (scheme, acc) {
            add(&mut self.scheme, scheme, weight);
            add(&mut self.acc, acc, weight);
        }
    }

    pub(super) fn join(&mut self, more: &Self) {
        let sums = self.scheme.iter_mut().chain(&mut self.acc);
        sums.zip(more.scheme.iter().chain(&more.acc)).for_each(|(sum, more)| *sum += more);
    }

    /// Per cent by which ACC's sum of a metric is lower than the scheme's; `None` if the scheme's sum is zero.
    pub(super) fn under(&self, metric: usize) -> Option<f64> {
        percent_below(self.acc[metric], self.scheme[metric])
    }
}

/// Weighted sums, one for each metric.
type Sums = [f64; METRICS.len()];

fn add(sums: &mut Sums, outcome: &Outcome, weight: f64) {
    let (cost, minutes) = (outcome.cost.as_usd(), outcome.took.as_secs_f64() / 60.0);
    for (sum, value) in sums.iter_mut().zip([cost, minutes, cost * minutes / 60.0]) {
        *sum += weight * value;
    }
}

/// Per cent by which one value is below the other; `None` if the other is zero.
fn percent_below(one: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| 100.0 * (1.0 - one / other))
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Money, Span};

    use super::*;

    fn outcome(dollars: i64, minutes: u64) -> Option<Outcome> {
        let (cost, took) =
            (Money::from_nanos(dollars * 1_000_000_000), Span::from_secs(60 * minutes));
        Some(Outcome { cost, took, ..Outcome::default() })
    }

    #[test]
    fn what_all_have_done_is_summed_and_what_two_have_beside_it() {
        assert_eq!(SpotScheme::ALL[ACC], SpotScheme::Acc);
        let (mut tally, mut beside) = (SchemeTally::default(), PairedTally::default());
        let all = |none| {
            let mut all = [outcome(4, 120); SCHEMES];
            (all[0], all[ACC]) = (none, outcome(3, 60));
            all
        };
        for (none, weight) in [(outcome(8, 240), 3.0), (None, 5.0)] {
            tally.add(&all(none), weight);
            beside.add(&all(none)[1], &all(none)[ACC], weight);
            beside.add(&None, &all(none)[ACC], weight);
        }
        assert_eq!(
            (tally.jobs, tally.mean(0, 0), tally.mean(ACC, 1)),
            (3.0, Some(8.0), Some(60.0))
        );
        // Of both that two schemes have done: 3 dollars beside 4, an hour beside two.
        assert_eq!(
            [0, 1, 2].map(|metric| beside.under(metric)),
            [Some(25.0), Some(50.0), Some(62.5)]
        );
        assert_eq!(tally.acc_under(0, 0), Some(62.5));
        assert_eq!(
            (SchemeTally::default().mean(0, 0), PairedTally::default().under(0)),
            (None, None)
        );
    }
}
