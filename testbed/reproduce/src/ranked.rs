//! Which of several settings is best by a figure, in words: by how much, with the interval of the paired difference, or
//! that nothing tells the settings apart.

use dormouse_analysis::{BetterSide, RunSample, series};
use dormouse_estimate::{Estimate, FEWEST};
use dormouse_view::number::{decimals_of_dollars, fixed, grouped};

use crate::measures::{ShownFigure, ShownFigures};

/// Figures that decide between settings, the most asked for first.
const DECISIVE: [&str; 10] = [
    "cost_usd",
    "makespan_s",
    "mean_response_s",
    "mean_bounded_slowdown",
    "failed_share",
    "revenue_usd",
    "cost_per_job_usd",
    "job_response_s",
    "work_lost_vcpu_h",
    "jobs_finished",
];
/// Greatest number of figures that a page is headed by.
const MOST_FIGURES: usize = 2;

/// A setting that is ranked: its name, and its runs in the order of seeds.
pub(crate) type RankedSetting<'a> = (&'a str, &'a [RunSample]);

/// A setting beside the best one.
struct Follower<'a> {
    name: &'a str,
    /// Change from the best setting to this one as a fraction of the best one's mean, over the seeds that both have; in the
    /// figure's own unit if that mean is zero. `None` if no seed has both.
    change: Option<Estimate>,
    is_relative: bool,
    /// Number of seeds under which this setting is worse than the best one, and number of seeds that both have.
    worse: (usize, usize),
}

impl Follower<'_> {
    /// Whether the change may be chance: its interval covers 0, or there are too few seeds for an interval.
    fn may_be_chance(&self) -> bool {
        self.change.is_none_or(|it| it.n < FEWEST || it.ci95.is_none() || it.covers(0.0))
    }
}

/// The figures of these runs that decide between settings: two at most, the most asked for first.
pub(crate) fn decisive(of: &ShownFigures) -> Vec<ShownFigure> {
    let named = |name: &&str| of.told.iter().find(|it| it.metric.name == *name).copied();
    let there = DECISIVE.iter().filter_map(named);
    there.filter(|it| it.metric.better.is_some()).take(MOST_FIGURES).collect()
}

/// The question which setting is best by a figure.
pub(crate) fn question(measure: &ShownFigure) -> String {
    match measure.metric.name {
        "cost_usd" => "Which is cheapest?".to_owned(),
        "makespan_s" => "Which is done first?".to_owned(),
        "mean_response_s" => "Under which are jobs done soonest?".to_owned(),
        "failed_share" => "Under which do fewest requests fail?".to_owned(),
        "revenue_usd" => "Which earns most?".to_owned(),
        _ => format!("Which is best by {}?", measure.name()),
    }
}

/// Which setting is best by a figure, in a sentence; `None` if fewer than two settings have the figure, or if neither
/// direction is better.
pub(crate) fn best_in_words(measure: &ShownFigure, all: &[RankedSetting<'_>]) -> Option<String> {
    let better = measure.metric.better?;
    let name = measure.metric.name;
    let means = best_first(measure, all);
    let ((best, best_runs, mean), others) = means.split_first()?;
    let followers: Vec<_> = others
        .iter()
        .map(|(setting, runs, _)| follower(setting, (best_runs, runs), (name, better)))
        .collect();
    let value = in_unit(measure, *mean);
    let are_same = |it: &Follower<'_>| it.change.is_some_and(|of| of.range == (0.0, 0.0));
    if followers.is_empty() {
        return None;
    }
    if followers.iter().all(are_same) {
        return Some(format!("the same under each: {value}."));
    }
    let (tied, told): (Vec<_>, Vec<_>) = followers.iter().partition(|it| it.may_be_chance());
    let far =
        told.first().map(|it| format!("that of {} is {}", it.name, more_in_words(measure, it)));
    Some(match (tied.as_slice(), far) {
        ([], Some(far)) => format!("{best}, {value}: {far}."),
        (tied, far) => {
            let named = |it: &&Follower<'_>| {
                let (worse, seeds) = it.worse;
                format!("{} (worse under {worse} of {seeds} seeds)", it.name)
            };
            let names: Vec<String> = tied.iter().map(named).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let side = match better {
                BetterSide::Lower => "lowest",
                BetterSide::Higher => "highest",
            };
            let few = tied.iter().filter_map(|it| it.change).any(|it| it.n < FEWEST);
            let more = match few {
                true => format!(": take {FEWEST} seeds or more to tell them apart"),
                false => String::new(),
            };
            let far = far.map(|far| format!("; {far}")).unwrap_or_default();
            format!(
                "no clear winner: {best} is {side} on average, {value}, but {} may be as good{more}{far}.",
                join(&names)
            )
        }
    })
}

/// The settings that have a figure with their runs and means, the best first; empty if neither direction is better.
pub(crate) fn best_first<'a>(
    measure: &ShownFigure,
    all: &[RankedSetting<'a>],
) -> Vec<(&'a str, &'a [RunSample], f64)> {
    let Some(better) = measure.metric.better else { return Vec::new() };
    let mean = |runs| Some(series(runs, measure.metric.name).estimate()?.mean);
    let means = all.iter().filter_map(|(setting, runs)| Some((*setting, *runs, mean(runs)?)));
    let mut means: Vec<_> = means.collect();
    means.sort_by(|a, b| match better {
        BetterSide::Lower => a.2.total_cmp(&b.2),
        BetterSide::Higher => b.2.total_cmp(&a.2),
    });
    means
}

fn follower<'a>(
    name: &'a str,
    (best, own): (&[RunSample], &[RunSample]),
    (metric, better): (&str, BetterSide),
) -> Follower<'a> {
    let [best, own] = [best, own].map(|runs| series(runs, metric).each);
    let both = best.iter().zip(&own).filter_map(|(best, own)| (*best).zip(*own));
    let (best, own): (Vec<f64>, Vec<f64>) = both.unzip();
    let relative = Estimate::of_change(&best, &own);
    let differences: Vec<f64> = own.iter().zip(&best).map(|(a, b)| a - b).collect();
    let change = relative.or_else(|| Estimate::from_samples(&differences));
    let is_worse = |difference: &&f64| match better {
        BetterSide::Lower => **difference > 0.0,
        BetterSide::Higher => **difference < 0.0,
    };
    let worse = (differences.iter().filter(is_worse).count(), differences.len());
    Follower { name, change, is_relative: relative.is_some(), worse }
}

/// A value of the figure with its unit.
fn in_unit(measure: &ShownFigure, x: f64) -> String {
    let value = measure.value(x);
    let number = grouped(&fixed(value, measure.digits()));
    let heading = measure.heading();
    match heading.strip_prefix(measure.name()).and_then(|rest| rest.strip_prefix(", ")) {
        Some("$") => format!("${}", grouped(&fixed(value, decimals_of_dollars(value)))),
        Some(unit) if unit.len() <= 6 => format!("{number} {unit}"),
        _ => number,
    }
}

/// By how much a setting's figure is higher or lower than the best one's: `12.3 % [10.1, 14.5] higher`.
fn more_in_words(measure: &ShownFigure, it: &Follower<'_>) -> String {
    let Some(change) = it.change else { return String::new() };
    let word = if change.mean < 0.0 { "lower" } else { "higher" };
    let shown = |x: f64| {
        let x = x * change.mean.signum();
        if it.is_relative { fixed(x * 100.0, 1) } else { fixed(measure.value(x), measure.digits()) }
    };
    let ends = change.ci95.map(|(low, high)| {
        let (low, high) = if change.mean < 0.0 { (high, low) } else { (low, high) };
        format!(" [{}, {}]", shown(low), shown(high))
    });
    let size =
        if it.is_relative { format!("{} %", shown(change.mean)) } else { shown(change.mean) };
    format!("{size}{} {word}", ends.unwrap_or_default())
}

/// Names joined by commas and "or".
fn join(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn runs(metric: &str, all: &[f64]) -> Vec<RunSample> {
        let run = |x: &f64| RunSample {
            figures: [(metric.to_owned(), *x)].into(),
            batches: [].into(),
            steps: 0,
            decisions: String::new(),
        };
        all.iter().map(run).collect()
    }

    fn said(metric: &str, all: &[(&str, &[f64])]) -> Option<String> {
        let samples: Vec<_> = all.iter().map(|(_, values)| runs(metric, values)).collect();
        let figures = ShownFigures::of_runs(&samples, &[]);
        let of = figures.named(metric);
        let settings: Vec<RankedSetting<'_>> =
            all.iter().zip(&samples).map(|((name, _), runs)| (*name, runs.as_slice())).collect();
        best_in_words(&of, &settings)
    }

    /// Six seeds; the second is a tenth dearer under each, the third now dearer and now cheaper than the first.
    #[test]
    fn the_best_is_named_with_what_the_next_costs_more_or_that_chance_may_decide() {
        let first = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
        let dearer = first.map(|x| x * 1.1);
        let luck = [1.1, 1.0, 1.3, 1.2, 1.5, 1.45];
        let is = said("cost_usd", &[("hads", &dearer), ("lazy", &first)]).unwrap();
        assert_eq!(is, "lazy, $1.25: that of hads is 10.0 % [8.4, 11.6] higher.");
        let is = said("cost_usd", &[("a", &first), ("b", &luck), ("c", &dearer)]).unwrap();
        assert!(
            is.starts_with(
                "no clear winner: a is lowest on average, $1.25, but b (worse under 3 of 6 seeds) may be as good; that of c is 10.0 %"
            ),
            "{is}"
        );
        assert_eq!(
            said("cost_usd", &[("a", &first), ("b", &first)]).unwrap(),
            "the same under each: $1.25."
        );
        let is = said("cost_usd", &[("a", &first[..3]), ("b", &dearer[..3])]).unwrap();
        assert_eq!(
            is,
            "no clear winner: a is lowest on average, $1.10, but b (worse under 3 of 3 seeds) may be as good: take 5 seeds or \
             more to tell them apart."
        );
        assert_eq!(said("cost_usd", &[("a", &first)]), None);
    }

    /// Of revenue the higher is better, and the next has less.
    #[test]
    fn of_revenue_the_highest_is_best() {
        let (most, less) = ([10.0, 11.0, 12.0, 13.0, 14.0], [5.0, 5.5, 6.0, 6.5, 7.0]);
        let is = said("revenue_usd", &[("filter", &less), ("opie", &most)]).unwrap();
        assert_eq!(is, "opie, $12.00: that of filter is 50.0 % [41.8, 58.2] lower.");
        assert_eq!(said("hibernations", &[("a", &most), ("b", &less)]), None, "neither is better");
    }
}
