//! What becomes of jobs under each scheme.

use std::collections::BTreeMap;

use dormouse_cloud::{PriceModel, PriceStatistics, PriceTrace};
use dormouse_model::Knows;
use dormouse_spot::{Outcome, SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Ppm, Price, Span, Stream, Time};

use super::PriceFiles;
use super::starts::starts;
use super::sweep::{self, Series};
use crate::sweep::SweepError;

/// The paper's job.
const WORK: Span = Span::from_secs(500 * 60);

/// Jobs of a sample.
const STARTS: usize = 20;

/// The figures of a case such as `eu-west-1.linux.m1.xlarge/standard/bid-0.320`: `acc/cost_usd`, and more.
/// `None`: there is no such case.
///
/// Jobs begin at times that are drawn over the record, the same for all bids, times of the job and schemes.
/// Means are over those that are done by its end under OPT, HOUR, ADAPT and ACC; those of NONE and EDGE, which
/// may never be done at a low bid, are over those of them that they do, too.
///
/// `all-bids` in place of a bid stands for all of the paper's, and `folder` in place of a series for all that there
/// are records of.
///
/// # Errors
///
/// There is no record of its prices.
pub(crate) fn simulated(
    case: &str,
    records: Option<&PriceFiles>,
    seed: u64,
) -> Result<Option<BTreeMap<String, f64>>, SweepError> {
    let words: Vec<&str> = case.split('/').collect();
    match (&words[..], records) {
        (&[GENERATED, times, level], _) => {
            let trace = generated().trace(LENGTH, &mut Stream::new(seed, "generated prices", 0));
            Ok(figures(GENERATED, (&trace, Time::ZERO + LENGTH), (times, level), seed))
        }
        (&[series, times, ALL_BIDS], Some(records)) => {
            let all: Vec<Series<'_>> = match series {
                FOLDER => records.all().collect(),
                _ => {
                    let (trace, until) = records.of(series)?;
                    vec![(series, trace, until)]
                }
            };
            Ok(job(times).map(|job| sweep::figures(&all, &job, seed)))
        }
        (&[series, times, level], Some(records)) => {
            let (trace, until) = records.of(series)?;
            Ok(figures(series, (trace, until), (times, level), seed))
        }
        _ => Ok(None),
    }
}

/// Whether there is a record of the prices of a case.
///
/// # Errors
///
/// There is none.
pub(crate) fn check(case: &str, records: &PriceFiles) -> Result<(), SweepError> {
    let series = case.split('/').next().unwrap_or(case);
    match series {
        GENERATED | FOLDER => Ok(()),
        _ => records.of(series).map(drop),
    }
}

/// The series that needs no record.
const GENERATED: &str = "generated";

/// The word of a case that stands for every series in the folder of prices.
const FOLDER: &str = "folder";

/// The word of a case that stands for every bid of the sweep.
const ALL_BIDS: &str = "all-bids";

/// How long prices are drawn for.
const LENGTH: Span = Span::from_secs(90 * 86_400);

/// Prices like those of m1.xlarge in eu-west-1: between $.304 and $.336, another every two hours or so, and
/// above that for two hours every five days.
fn generated() -> PriceModel {
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

fn figures(
    series: &str,
    (trace, until): (&PriceTrace, Time),
    (times, level): (&str, &str),
    seed: u64,
) -> Option<BTreeMap<String, f64>> {
    let record = SpotRecord::new(trace, bid(level, trace, until)?, until);
    let job = job(times)?;
    let starts = starts(seed, series, until).take(STARTS);
    let all: Vec<[Option<Outcome>; 6]> =
        starts.map(|start| SpotScheme::ALL.map(|scheme| job.run(scheme, &record, start))).collect();
    let is_done = |outcomes: &&[Option<Outcome>; 6]| {
        let mut each = SpotScheme::ALL.iter().zip(outcomes.iter());
        each.all(|(scheme, outcome)| scheme.may_never_end() || outcome.is_some())
    };
    let compared: Vec<_> = all.iter().filter(is_done).collect();
    let mut figures = BTreeMap::new();
    for (n, scheme) in SpotScheme::ALL.into_iter().enumerate() {
        let done: Vec<&Outcome> = compared.iter().filter_map(|all| all[n].as_ref()).collect();
        let by_itself = all.iter().filter(|all| all[n].is_some()).count();
        let mut add = |figure: &str, value: f64| {
            figures.insert(format!("{}/{figure}", scheme.name().to_lowercase()), value);
        };
        add("done_pct", 100.0 * part(by_itself, STARTS));
        add("compared_pct", 100.0 * part(compared.len(), STARTS));
        if done.is_empty() {
            continue;
        }
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            done.iter().map(|outcome| of(outcome)).sum::<f64>() / number(done.len())
        };
        let minutes = |span: Span| span.as_secs_f64() / 60.0;
        add("cost_usd", mean(&|of| of.cost.as_usd()));
        add("time_min", mean(&|of| minutes(of.took)));
        add("product", mean(&|of| of.cost.as_usd() * minutes(of.took) / 60.0));
        add("lost_min", mean(&|of| minutes(of.lost)));
        add("checkpoints", mean(&|of| of.checkpoints.into()));
        add("restarts", mean(&|of| of.restarts.into()));
        if scheme == SpotScheme::Acc {
            add("unkept", mean(&|of| of.unkept.into()));
        }
    }
    Some(figures)
}

/// `bid-0.320`, dollars an hour; or `available-50`: the least bid at which an instance can be had for half of the time.
fn bid(level: &str, trace: &PriceTrace, until: Time) -> Option<Price> {
    if let Some(price) = level.strip_prefix("bid-") {
        return price.parse().ok();
    }
    let percent: f64 = level.strip_prefix("available-")?.parse().ok()?;
    Some(PriceStatistics::of(trace, until)?.quantile(percent / 100.0))
}

/// `standard`; `adapt-oracle`, whose ADAPT knows the whole record; or one of t_c, t_r and t_w in minutes in place of
/// the standard one: `tc-10`.
fn job(times: &str) -> Option<SpotJob> {
    let job = SpotJob::of(WORK);
    match times {
        "standard" => return Some(job),
        "adapt-oracle" => return Some(SpotJob { knows: Knows::WholeRecord, ..job }),
        _ => {}
    }
    let (which, minutes) = times.split_once('-')?;
    let span = Span::from_secs(60 * minutes.parse::<u64>().ok()?);
    Some(match which {
        "tc" => SpotJob { checkpoint: span, ..job },
        "tr" => SpotJob { restart: span, ..job },
        "tw" => SpotJob { look: span, ..job },
        _ => return None,
    })
}

fn part(n: usize, of: usize) -> f64 {
    number(n) / number(of)
}

#[expect(clippy::cast_precision_loss, reason = "jobs are few")]
const fn number(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_job_are_read_and_the_oracle_changes_adapt_alone() {
        let minutes = |n: u64| Span::from_secs(60 * n);
        let read = |times| job(times).map(|job| (job.checkpoint, job.restart, job.look, job.knows));
        let past = Knows::Past;
        assert_eq!(read("standard"), Some((minutes(5), minutes(5), minutes(1), past)));
        assert_eq!(read("tc-10"), Some((minutes(10), minutes(5), minutes(1), past)));
        assert_eq!(read("tw-2"), Some((minutes(5), minutes(5), minutes(2), past)));
        assert_eq!([read("tx-2"), read("tc-x"), read("oracle")], [None; 3]);
        let [learns, knows] = ["standard", "adapt-oracle"].map(|times| {
            let case = format!("{GENERATED}/{times}/available-50");
            simulated(&case, None, 1).ok().flatten().expect("it needs no records")
        });
        let differ = learns.iter().filter(|(name, value)| knows[*name] != **value);
        let differ: Vec<_> = differ.map(|(name, _)| name.as_str()).collect();
        assert!(differ.contains(&"adapt/lost_min"), "{differ:?}");
        assert!(differ.iter().all(|name| name.starts_with("adapt/")), "{differ:?}");
    }
}
