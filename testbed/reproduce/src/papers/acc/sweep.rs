//! The paper's averages: every recorded type, at every bid from 0 to $2 (section VII-A).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use dormouse_cloud::{PriceStatistics, PriceTrace};
use dormouse_spot::{Outcome, SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Price, Span, Time};

use super::blocks::{self, starts};
use super::tally::{ACC, METRICS, PairedTally, SCHEMES, SchemeTally};

/// Bids in thousandths of a dollar per hour.
const BIDS: RangeInclusive<u64> = 0..=2_000;

/// Number of jobs in a sample at each bid on each type; they begin at the same times for all bids
/// and schemes.
const STARTS: usize = 10;

/// The record of a type: its name, its prices, and the time until which they are known.
pub(super) type Series<'a> = (&'a str, &'a PriceTrace, Time);

/// Time between the beginnings of jobs on each type when weeks are resampled: a day and an hour, so that jobs begin at
/// all hours of the day.
const EVERY: Span = Span::from_secs(25 * 3_600);

/// Figures of all series (one for each instance type): `acc/cost_usd` and more.
///
/// Means are over the jobs that all six schemes finish by the end of the record, so that they are
/// of the same jobs; where ACC is compared with one scheme, over the jobs that both finish. A mean
/// is first taken for each type, with equal weight for each bid, and then over the types.
pub(super) fn figures(all: &[Series<'_>], job: &SpotJob, seed: u64) -> BTreeMap<String, f64> {
    let of_type = |series: &Series<'_>| {
        let (name, _, until) = series;
        let starts: Vec<Time> = starts(seed, name, *until).take(STARTS).collect();
        TypeResults::by_group(series, job, &starts, |_| 0).pop().unwrap_or_default()
    };
    figures_of_types(all.iter().map(of_type).collect())
}

/// Results of the jobs of each week on each type, which begin at regular times; computed on first
/// use.
#[derive(Debug, Default)]
pub(super) struct WeeksOfTypes {
    types: OnceLock<Vec<OnceLock<Vec<TypeResults>>>>,
}

impl WeeksOfTypes {
    /// Figures of a resample with this seed, in blocks of `block` weeks: types are drawn with
    /// replacement, and each with the same weeks ([`blocks::drawn`]).
    pub(super) fn resampled(
        &self,
        all: &[Series<'_>],
        job: &SpotJob,
        (seed, block): (u64, usize),
    ) -> BTreeMap<String, f64> {
        let types = self.types.get_or_init(|| all.iter().map(|_| OnceLock::new()).collect());
        let weeks = |n: usize| {
            types[n].get_or_init(|| {
                let starts: Vec<Time> = blocks::regular(all[n].2, EVERY).collect();
                TypeResults::by_group(&all[n], job, &starts, blocks::week_of)
            })
        };
        // Seeds start with different types, so that threads compute different ones.
        let first = usize::try_from(seed).unwrap_or(0).wrapping_mul(all.len() / 2 + 1);
        for n in 0..all.len() {
            let _ = weeks(first.wrapping_add(n) % all.len());
        }
        let joined = |n: usize| {
            let mut sum = TypeResults::default();
            let weeks = weeks(n);
            blocks::drawn(seed, weeks.len(), block)
                .into_iter()
                .for_each(|week| sum.join(&weeks[week]));
            sum
        };
        figures_of_types(
            blocks::with_replacement(seed, "types", all.len()).into_iter().map(joined).collect(),
        )
    }
}

/// Figures from the results of jobs on these types.
fn figures_of_types(mut types: Vec<TypeResults>) -> BTreeMap<String, f64> {
    types.sort_by(|a, b| a.price.total_cmp(&b.price));
    let (cheap, dear) = types.split_at(types.len() / 2);
    let all_of = |of: fn(&TypeResults) -> f64| types.iter().map(of).sum::<f64>();
    let tried = all_of(|of| of.tried);
    let mut figures = BTreeMap::new();
    for (n, scheme) in SpotScheme::ALL.into_iter().enumerate() {
        let mut add = |figure: &str, value: Option<f64>| {
            let name = format!("{}/{figure}", scheme.name().to_lowercase());
            figures.extend(value.map(|value| (name, value)));
        };
        let done: f64 = types.iter().map(|of| of.done[n]).sum();
        let part = |jobs: f64| (tried > 0.0).then(|| 100.0 * jobs / tried);
        add("done_pct", part(done));
        add("compared_pct", part(all_of(|of| of.all.jobs)));
        add("pairs", Some(all_of(|of| of.all.pairs)));
        for (m, (word, metric)) in METRICS.into_iter().enumerate() {
            add(metric, mean(types.iter().filter_map(|of| of.all.mean(n, m))));
            if n == ACC {
                continue;
            }
            let under = |of: &[TypeResults]| mean(of.iter().filter_map(|of| of.beside[n].under(m)));
            add(&format!("acc_under_{word}_pct"), under(&types));
            let of_all = types.iter().filter_map(|of| of.all.acc_under(n, m));
            add(&format!("acc_under_{word}_all_done_pct"), mean(of_all));
            let crossed = types.iter().filter_map(|of| of.crossed[n].under(m));
            add(&format!("acc_under_{word}_crossed_pct"), mean(crossed));
            let halves = (under(cheap), under(dear));
            add(&format!("acc_under_{word}_cheap_pct"), halves.0);
            add(&format!("acc_under_{word}_dear_pct"), halves.1);
            let more = halves.0.zip(halves.1).map(|(cheap, dear)| dear - cheap);
            add(&format!("acc_under_{word}_dear_more"), more);
        }
    }
    figures
}

/// Results of jobs on one instance type.
#[derive(Debug, Default)]
struct TypeResults {
    /// Mean price of the type, dollars per hour.
    price: f64,
    /// Number of jobs, summed over all bids.
    tried: f64,
    /// Number of jobs that each scheme finishes.
    done: [f64; SCHEMES],
    /// Sums over the jobs that all schemes finish.
    all: SchemeTally,
    /// For each scheme, sums over the jobs that it and ACC finish.
    beside: [PairedTally; SCHEMES],
    /// For each scheme, sums over the jobs that it and ACC finish, at bids that the price crosses during the record.
    crossed: [PairedTally; SCHEMES],
}

impl TypeResults {
    /// Results by group of the jobs that begin at `starts`; `group` gives the index of a job's
    /// group.
    fn by_group(
        (_, trace, until): &Series<'_>,
        job: &SpotJob,
        starts: &[Time],
        group: fn(Time) -> usize,
    ) -> Vec<Self> {
        let held = trace.steps().iter().take_while(|(from, _)| from < until);
        let mut prices: Vec<Price> = held.map(|(_, price)| *price).collect();
        prices.sort_unstable();
        prices.dedup();
        // Bids with no price between them see the same instances: all bids above the same prices
        // are computed once.
        let mut bids = vec![0.0; prices.len() + 1];
        for mills in BIDS {
            let bid = Price::from_nanos_per_hour(mills * 1_000_000);
            bids[prices.partition_point(|price| *price <= bid)] += 1.0;
        }
        let price = PriceStatistics::measure_trace(trace, *until).map_or(0.0, |of| of.mean_usd);
        let groups = starts.iter().map(|start| group(*start) + 1).max().unwrap_or(1);
        let mut all: Vec<Self> = (0..groups).map(|_| Self { price, ..Self::default() }).collect();
        let all_bids = bids.iter().sum::<f64>();
        starts.iter().for_each(|start| all[group(*start)].tried += all_bids);
        // Below all prices no instance is available.
        for (n, price) in prices.iter().enumerate().filter(|(n, _)| bids[n + 1] > 0.0) {
            let record = SpotRecord::new(trace, *price, *until);
            let (weight, is_crossed) = (bids[n + 1], n + 1 < prices.len());
            let mut tallies: Vec<SchemeTally> =
                (0..groups).map(|_| SchemeTally::default()).collect();
            for start in starts {
                let outcomes = SpotScheme::ALL.map(|scheme| job.run(scheme, &record, *start));
                let at = group(*start);
                all[at].add(&outcomes, weight, is_crossed);
                tallies[at].add(&outcomes, weight);
            }
            for (swept, mut tally) in all.iter_mut().zip(tallies) {
                tally.pairs = if tally.jobs > 0.0 { weight } else { 0.0 };
                swept.all.join(&tally);
            }
        }
        all
    }

    /// Adds the results of a job at `weight` bids, except the sums over jobs that all schemes
    /// finish.
    fn add(&mut self, outcomes: &[Option<Outcome>; SCHEMES], weight: f64, is_crossed: bool) {
        for (n, outcome) in outcomes.iter().enumerate() {
            self.done[n] += if outcome.is_some() { weight } else { 0.0 };
            self.beside[n].add(outcome, &outcomes[ACC], weight);
            if is_crossed {
                self.crossed[n].add(outcome, &outcomes[ACC], weight);
            }
        }
    }

    /// Adds the results of other jobs on the same instance type.
    fn join(&mut self, more: &Self) {
        self.price = more.price;
        self.tried += more.tried;
        self.all.join(&more.all);
        for n in 0..SCHEMES {
            self.done[n] += more.done[n];
            self.beside[n].join(&more.beside[n]);
            self.crossed[n].join(&more.crossed[n]);
        }
    }
}

fn mean(of: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = of.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / number(all.len()))
}

#[expect(clippy::cast_precision_loss, reason = "types and jobs are few")]
const fn number(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cents(n: u64) -> Price {
        Price::from_nanos_per_hour(n * 10_000_000)
    }

    /// Prices of 60 days: 10 cents per hour, but 30 cents from hour 15 to hour 20 of each day.
    fn spiky() -> PriceTrace {
        let hour = |h: u64| Time::from_secs(3_600 * h);
        let day = |n: u64| {
            [
                (hour(24 * n), cents(10)),
                (hour(24 * n + 15), cents(30)),
                (hour(24 * n + 20), cents(10)),
            ]
        };
        PriceTrace::new((0..60).flat_map(day).collect())
    }

    /// Figures computed by groups of bids equal those of all 2,001 bids, run one by one.
    #[test]
    fn groups_of_bids_are_all_of_their_bids() {
        let (trace, until) = (spiky(), Time::from_secs(60 * 86_400));
        let job = SpotJob::with_work(Span::from_secs(200 * 60));
        let of = figures(&[("spiky", &trace, until)], &job, 3);
        let (mut sum, mut jobs, mut done) = (0.0, 0_u32, 0_u32);
        for mills in BIDS {
            let record =
                SpotRecord::new(&trace, Price::from_nanos_per_hour(mills * 1_000_000), until);
            for start in starts(3, "spiky", until).take(STARTS) {
                let all = SpotScheme::ALL.map(|scheme| job.run(scheme, &record, start));
                done += u32::from(all[1].is_some());
                if let [Some(_), Some(opt), Some(_), Some(_), Some(_), Some(_)] = &all {
                    sum += opt.took.as_secs_f64() / 60.0;
                    jobs += 1;
                }
            }
        }
        let is = |name: &str, wanted: f64| {
            assert!(
                (of[name] - wanted).abs() < 1e-9 * wanted.abs(),
                "{name}: {} not {wanted}",
                of[name]
            );
        };
        is("opt/time_min", sum / f64::from(jobs));
        is("opt/done_pct", 100.0 * f64::from(done) / 20_010.0);
        is("hour/compared_pct", 100.0 * f64::from(jobs) / 20_010.0);
        // Below 10 cents there is no instance; at 1,901 bids there is.
        is("acc/pairs", 1_901.0);
        assert!(of["opt/acc_under_time_crossed_pct"] > of["opt/acc_under_time_pct"], "{of:?}");
        assert!(!of.contains_key("opt/acc_under_time_dear_more"), "there is one type: {of:?}");
    }

    #[test]
    fn each_type_weighs_the_same_and_the_dearer_half_is_by_itself() {
        let until = Time::from_secs(60 * 86_400);
        let (cheap, dear) =
            (PriceTrace::new(vec![(Time::ZERO, cents(10))]), spiky().scaled_by(5.0));
        let job = SpotJob::with_work(Span::from_secs(10 * 60));
        let all = [("dear", &dear, until), ("cheap", &cheap, until)];
        let of = figures(&all, &job, 1);
        let alone = |n: usize| figures(&all[n..=n], &job, 1);
        for name in ["opt/acc_under_cost", "edge/acc_under_product"] {
            let [dear, cheap] = [0, 1].map(|n| alone(n)[&format!("{name}_pct")]);
            assert!((of[&format!("{name}_pct")] - (dear + cheap) / 2.0).abs() < 1e-9, "{of:?}");
            assert!((of[&format!("{name}_dear_pct")] - dear).abs() < 1e-9, "{of:?}");
            assert!((of[&format!("{name}_dear_more")] - (dear - cheap)).abs() < 1e-9, "{of:?}");
        }
        // A price that never changes crosses no bid.
        assert!(!alone(1).contains_key("opt/acc_under_cost_crossed_pct"));
        let nothing = figures(&[], &job, 1);
        assert!(nothing.values().all(|value| *value == 0.0), "{nothing:?}");
    }

    /// On a type whose VMs are never preempted ACC and OPT do not differ. A resample of two types, of which the other
    /// one shows a difference, therefore has all, half or none of this difference; the drawn weeks are the same for all
    /// types.
    #[test]
    fn types_and_weeks_are_drawn_anew() {
        let until = Time::from_secs(60 * 86_400);
        let (cheap, dear) = (PriceTrace::new(vec![(Time::ZERO, cents(10))]), spiky());
        let job = SpotJob::with_work(Span::from_secs(200 * 60));
        let all = [("cheap", &cheap, until), ("dear", &dear, until)];
        let [of_both, of_dear] = [WeeksOfTypes::default(), WeeksOfTypes::default()];
        let mut seen = [0_u32; 3];
        for seed in 1..40 {
            let figure = |memory: &WeeksOfTypes, types: &[Series<'_>]| {
                memory.resampled(types, &job, (seed, 4))["opt/acc_under_time_pct"]
            };
            let (both, dear) = (figure(&of_both, &all), figure(&of_dear, &all[1..]));
            assert!(dear > 0.0, "ACC works on where OPT waits: {dear}");
            let part = [0.0, 0.5, 1.0].iter().position(|part| (both - part * dear).abs() < 1e-9);
            seen[part.unwrap_or_else(|| panic!("seed {seed}: {both} of {dear}"))] += 1;
        }
        assert!(seen.iter().all(|count| *count > 3), "{seen:?}");
    }
}
