//! Sums over jobs at one bid, and the means that a cell reports.

use std::collections::BTreeMap;

use dormouse_spot::{Outcome, SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Span, Time};

use super::tally::SCHEMES;

/// Names of a scheme's figures, in the order of [`figure_values`].
const FIGURES: [&str; 7] =
    ["cost_usd", "time_min", "product", "lost_min", "checkpoints", "restarts", "unkept"];

/// Sums over jobs of their figures under each scheme.
///
/// Means are over the jobs that OPT, HOUR, ADAPT and ACC all finish by the end of the record. NONE and EDGE may never finish a job
/// at a low bid: the mean of each of them is over the jobs that it finishes as well.
#[derive(Clone, Debug, Default)]
pub(super) struct JobSums {
    /// Number of jobs that were run under every scheme.
    jobs: u32,
    /// Number of jobs that OPT, HOUR, ADAPT and ACC all finish.
    compared: u32,
    /// Number of jobs that each scheme finishes.
    done: [u32; SCHEMES],
    /// For each scheme, the number of compared jobs that it finishes, and the sums over them.
    sums: [(u32, [f64; FIGURES.len()]); SCHEMES],
}

impl JobSums {
    /// Runs a job that begins at `start` under every scheme, and adds its figures.
    pub(super) fn run(&mut self, job: &SpotJob, record: &SpotRecord<'_>, start: Time) {
        let outcomes = SpotScheme::ALL.map(|scheme| job.run(scheme, record, start));
        let mut each = SpotScheme::ALL.iter().zip(&outcomes);
        let is_compared = each.all(|(scheme, of)| scheme.may_never_end() || of.is_some());
        self.jobs += 1;
        self.compared += u32::from(is_compared);
        for (n, outcome) in outcomes.iter().enumerate() {
            let Some(outcome) = outcome else { continue };
            self.done[n] += 1;
            if is_compared {
                let (count, sums) = &mut self.sums[n];
                *count += 1;
                sums.iter_mut().zip(figure_values(outcome)).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// Adds the sums over other jobs.
    pub(super) fn join(&mut self, more: &Self) {
        self.jobs += more.jobs;
        self.compared += more.compared;
        for n in 0..SCHEMES {
            self.done[n] += more.done[n];
            let ((count, sums), (others, all)) = (&mut self.sums[n], &more.sums[n]);
            *count += others;
            sums.iter_mut().zip(all).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Figures by name, `acc/cost_usd` and more; a scheme that finishes no compared job has only
    /// its count.
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let part = |n: u32| 100.0 * f64::from(n) / f64::from(self.jobs.max(1));
        let mut figures = BTreeMap::new();
        for (n, scheme) in SpotScheme::ALL.into_iter().enumerate() {
            let mut add = |figure: &str, value: f64| {
                figures.insert(format!("{}/{figure}", scheme.name().to_lowercase()), value);
            };
            add("done_pct", part(self.done[n]));
            add("compared_pct", part(self.compared));
            let (count, sums) = self.sums[n];
            if count == 0 {
                continue;
            }
            for (figure, sum) in FIGURES.into_iter().zip(sums) {
                // Only ACC looks twice, and may find between its looks what it can't keep.
                if figure != "unkept" || scheme == SpotScheme::Acc {
                    add(figure, sum / f64::from(count));
                }
            }
        }
        figures
    }
}

/// Figures of one job, in the order of [`FIGURES`].
fn figure_values(of: &Outcome) -> [f64; FIGURES.len()] {
    let minutes = |span: Span| span.as_secs_f64() / 60.0;
    let (cost, time) = (of.cost.as_usd(), minutes(of.took));
    let [checkpoints, restarts, unkept] = [of.checkpoints, of.restarts, of.unkept].map(f64::from);
    [cost, time, cost * time / 60.0, minutes(of.lost), checkpoints, restarts, unkept]
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::PriceTrace;
    use dormouse_units::Price;

    use super::*;

    /// Prices of five cents per hour; in the last two of every ten hours nine cents.
    fn prices() -> PriceTrace {
        let cents = |n: u64| Price::from_nanos_per_hour(n * 10_000_000);
        let hour = |n: u64| Time::from_secs(3_600 * n);
        let steps = (0..20).flat_map(|n| [(hour(10 * n), cents(5)), (hour(10 * n + 8), cents(9))]);
        PriceTrace::new(steps.collect())
    }

    #[test]
    fn sums_are_joined_and_what_is_never_done_has_no_means() {
        let (trace, until) = (prices(), Time::from_secs(3_600 * 200));
        let record = SpotRecord::new(&trace, Price::from_nanos_per_hour(50_000_000), until);
        let job = SpotJob::with_work(Span::from_secs(3_600 * 9));
        let starts = [1, 30, 77, 199].map(|n| Time::from_secs(3_600 * n));
        let mut whole = JobSums::default();
        let mut joined = JobSums::default();
        for start in starts {
            whole.run(&job, &record, start);
            let mut one = JobSums::default();
            one.run(&job, &record, start);
            joined.join(&one);
        }
        let of = whole.figures();
        assert_eq!(of, joined.figures());
        // The last of four begins too late; NONE never has nine hours on end.
        assert_eq!(
            (of["opt/done_pct"], of["acc/compared_pct"], of["none/done_pct"]),
            (75.0, 75.0, 0.0)
        );
        assert!(!of.contains_key("none/cost_usd") && !of.contains_key("opt/unkept"), "{of:?}");
        assert!(of["opt/cost_usd"] > 0.0 && of.contains_key("acc/unkept"), "{of:?}");
        assert_eq!(JobSums::default().figures()["opt/done_pct"], 0.0);
    }
}
