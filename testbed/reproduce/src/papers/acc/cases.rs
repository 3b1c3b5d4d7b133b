//! Figures of jobs under each checkpoint scheme, by case.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dormouse_cloud::{PriceModel, PriceStatistics, PriceTrace};
use dormouse_spot::SpotRecord;
use dormouse_units::{Ppm, Price, RandomStream, Span, Time};

use super::blocks::{self, starts};
use super::means::JobSums;
use super::sweep::{self, Series, WeeksOfTypes};
use super::variant::JobVariant;
use super::{PriceFiles, RecordSettings};
use crate::sweep::SweepError;

/// Number of jobs in a sample.
const STARTS: usize = 20;

/// Time between the beginnings of jobs when weeks are resampled: jobs begin at eight times of each day.
const EVERY: Span = Span::from_secs(3 * 3_600);

/// Results of a case's jobs, which are run once and shared by all resamples of the case.
#[derive(Debug, Default)]
pub(crate) struct CaseJobs {
    weeks: OnceLock<Option<Vec<JobSums>>>,
    types: WeeksOfTypes,
}

/// Price records, settings and finished jobs from which the figures of cases are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseInputs<'a> {
    /// Price records; `None` if none are given, so that only generated prices are available.
    pub(crate) records: Option<&'a PriceFiles>,
    /// The job, and the part of each spot price record that is used.
    pub(crate) settings: &'a RecordSettings,
    /// Results of the case's jobs that were already run.
    pub(crate) memory: &'a CaseJobs,
}

/// Figures of a case such as `eu-west-1.linux.m1.xlarge/standard/bid-0.320`, by name:
/// `acc/cost_usd`, and more. `None` if there is no such case.
///
/// Jobs begin at times that are drawn over the record, the same for all bids, variants and schemes;
/// when weeks of the record are resampled ([`blocks`]), they begin at regular times.
/// [`JobVariant::named`] has the words in the middle. `all-bids` in place of a bid stands for all of
/// the paper's bids, and `folder` in place of a series for all series with records.
///
/// # Errors
///
/// There is no record of its prices.
pub(crate) fn simulated(
    case: &str,
    given: CaseInputs<'_>,
    seed: u64,
) -> Result<Option<BTreeMap<String, f64>>, SweepError> {
    let words: Vec<&str> = case.split('/').collect();
    let &[series, word, level] = &words[..] else { return Ok(None) };
    let Some(variant) = JobVariant::named(word, given.settings.job) else { return Ok(None) };
    match (series, level, given.records) {
        (GENERATED, _, _) => {
            let trace = price_model()
                .draw_trace(LENGTH, &mut RandomStream::new(seed, "generated prices", 0));
            Ok(figures_of_draw(GENERATED, (&trace, Time::ZERO + LENGTH), (&variant, level), seed))
        }
        (FOLDER, ALL_BIDS, Some(records)) => {
            let all: Vec<Series<'_>> = records.all().collect();
            Ok(Some(match variant.block {
                Some(block) => given.memory.types.resampled(&all, &variant.job, (seed, block)),
                None => sweep::figures(&all, &variant.job, seed),
            }))
        }
        (_, _, Some(records)) => {
            let (trace, until) = records.prices(series)?;
            Ok(match (level, variant.block) {
                (ALL_BIDS, None) => {
                    Some(sweep::figures(&[(series, trace, until)], &variant.job, seed))
                }
                (ALL_BIDS, Some(_)) => None,
                (_, None) => figures_of_draw(series, (trace, until), (&variant, level), seed),
                (_, Some(block)) => {
                    let make = || by_week((trace, until), (&variant, level));
                    given
                        .memory
                        .weeks
                        .get_or_init(make)
                        .as_deref()
                        .map(|weeks| figures_of_weeks(weeks, (seed, block)))
                }
            })
        }
        _ => Ok(None),
    }
}

/// Checks that there is a record of the prices of a case.
///
/// # Errors
///
/// There is no such record.
pub(crate) fn check(case: &str, records: &PriceFiles) -> Result<(), SweepError> {
    let series = case.split('/').next().unwrap_or(case);
    match series {
        GENERATED | FOLDER => Ok(()),
        _ => records.prices(series).map(drop),
    }
}

/// Name of the series that needs no record.
const GENERATED: &str = "generated";

/// Word in the name of a case that stands for all series in the folder of prices.
const FOLDER: &str = "folder";

/// Word in the name of a case that stands for all bids of the sweep.
const ALL_BIDS: &str = "all-bids";

/// Length of the generated price record: 90 days.
const LENGTH: Span = Span::from_secs(90 * 86_400);

/// Model of prices like those of m1.xlarge in eu-west-1: between $.304 and $.336, changing about
/// every two hours, and higher for two hours every five days.
fn price_model() -> PriceModel {
    let mills = |n: u64| Price::from_nanos_per_hour(n * 1_000_000);
    let hours = |n: u64| Span::from_secs(3_600 * n);
    PriceModel {
        low: mills(304),
        high: mills(336),
        step: mills(2),
        every: hours(2),
        spike_every: hours(5 * 24),
        spike_lasts: hours(2),
        spike_lift: mills(200),
        spike_spread: Ppm::new(800_000),
    }
}

/// Figures of jobs that begin at times drawn with this seed; empty if the record ends before the part that is used, `None` if
/// `level` is not a word for a bid.
fn figures_of_draw(
    series: &str,
    (trace, until): (&PriceTrace, Time),
    (variant, level): (&JobVariant, &str),
    seed: u64,
) -> Option<BTreeMap<String, f64>> {
    let Some((trace, until)) = variant.part(trace, until) else { return Some(BTreeMap::new()) };
    let record = SpotRecord::new(&trace, parse_bid(level, &trace, until)?, until);
    let mut sums = JobSums::default();
    for start in starts(seed, series, until).take(STARTS) {
        sums.run(&variant.job, &record, start);
    }
    Some(sums.figures())
}

/// Sums over the jobs of each week of a record; jobs begin at regular times.
fn by_week(
    (trace, until): (&PriceTrace, Time),
    (variant, level): (&JobVariant, &str),
) -> Option<Vec<JobSums>> {
    let record = SpotRecord::new(trace, parse_bid(level, trace, until)?, until);
    let mut weeks: Vec<JobSums> = Vec::new();
    for start in blocks::regular(until, EVERY) {
        weeks.resize_with(blocks::week_of(start) + 1, JobSums::default);
        if let Some(week) = weeks.last_mut() {
            week.run(&variant.job, &record, start);
        }
    }
    Some(weeks)
}

/// Figures of the weeks drawn with this seed, in blocks of `block` weeks.
fn figures_of_weeks(weeks: &[JobSums], (seed, block): (u64, usize)) -> BTreeMap<String, f64> {
    let mut sums = JobSums::default();
    blocks::drawn(seed, weeks.len(), block).into_iter().for_each(|week| sums.join(&weeks[week]));
    sums.figures()
}

/// The bid that a word of a case stands for: `bid-0.320` in dollars per hour, or `available-50`, the lowest bid with which an
/// instance is available half of the time. `None` if there is no such word.
fn parse_bid(level: &str, trace: &PriceTrace, until: Time) -> Option<Price> {
    if let Some(price) = level.strip_prefix("bid-") {
        return price.parse().ok();
    }
    let percent: f64 = level.strip_prefix("available-")?.parse().ok()?;
    Some(PriceStatistics::measure_trace(trace, until)?.price_quantile(percent / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(case: &str) -> BTreeMap<String, f64> {
        let (settings, memory) = (RecordSettings::default(), CaseJobs::default());
        let given = CaseInputs { records: None, settings: &settings, memory: &memory };
        simulated(case, given, 1).ok().flatten().expect("it needs no records")
    }

    #[test]
    fn the_oracle_changes_adapt_alone() {
        let [learns, knows] = ["standard", "adapt-oracle"]
            .map(|word| figures_of(&format!("{GENERATED}/{word}/available-50")));
        let differ = learns.iter().filter(|(name, value)| knows[*name] != **value);
        let differ: Vec<_> = differ.map(|(name, _)| name.as_str()).collect();
        assert!(differ.contains(&"adapt/lost_min"), "{differ:?}");
        assert!(differ.iter().all(|name| name.starts_with("adapt/")), "{differ:?}");
    }

    /// Resamples of a record whose weeks are all alike have the same figures; if weeks differ, resamples differ too.
    #[test]
    fn resamples_differ_as_much_as_weeks_do() {
        let cents = |n: u64| Price::from_nanos_per_hour(n * 10_000_000);
        let hour = |h: u64| Time::from_secs(3_600 * h);
        let (until, job) = (hour(168 * 20), RecordSettings::default().job);
        // Above the bid for four hours of every twelve; in the second record every other week only.
        let record = |is_quiet: fn(u64) -> bool| {
            let spikes = (0..14 * 20).filter(|n| !is_quiet(n / 14));
            let steps =
                spikes.flat_map(|n| [(hour(12 * n), cents(5)), (hour(12 * n + 8), cents(50))]);
            let first = [(Time::ZERO, cents(5))];
            PriceTrace::new(first.into_iter().chain(steps).collect())
        };
        let variant = JobVariant::named("resampled", job).expect("a word");
        let spread = |trace: &PriceTrace| {
            let weeks = by_week((trace, until), (&variant, "bid-0.100")).expect("a bid");
            assert_eq!(weeks.len(), 20);
            let cost = |seed| figures_of_weeks(&weeks, (seed, 4))["acc/cost_usd"];
            let all: Vec<f64> = (1..30).map(cost).collect();
            let mean = all.iter().sum::<f64>() / 29.0;
            all.iter().map(|x| (x - mean).abs()).fold(0.0, f64::max) / mean
        };
        let (same, other) = (spread(&record(|_| false)), spread(&record(|week| week % 8 < 4)));
        assert!(same < 0.02, "{same}");
        assert!(other > 3.0 * same.max(0.01), "{other} {same}");
    }
}
