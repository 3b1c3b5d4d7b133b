//! Likely cause of a claim that does not hold: found by experiments that each change one factor,
//! with the same seeds.

use dormouse_estimate::{Estimate, Said, Series, Verdict};

use super::claims::{JudgedClaim, said};
use super::closer::CloserTrial;
use super::factor::ReadingFactor;
use super::paper::PaperEvaluation;
use super::readings::PaperReading;

/// Least share (0 to 1) of the distance from our figure to the paper's that a factor has to remove to be named as a cause.
const ENOUGH: f64 = 0.1;

/// Least number of seeds under which a trial has our figure both with and without the factor.
pub const LEAST_PAIRS: usize = 30;

/// Probability that any tried factor is named by chance alone; each has an equal share of it
/// (Bonferroni).
const BY_CHANCE: f64 = 0.05;

/// Trials that each apply one factor; the first trial applies none.
#[derive(Clone, Copy, Debug)]
pub(super) struct FactorTrials<'a> {
    pub(super) readings: &'a [PaperReading],
    /// Whether the first trial has the same runs as our figures. Trials with fewer jobs do not.
    pub(super) are_ours: bool,
    /// If `are_ours` is false: for each claim a trial of its nearest factor in the same runs as our figures, under
    /// enough seeds.
    pub(super) closer: &'a [CloserTrial],
}

/// Cause of a claim that does not hold, as far as changing one factor at a time shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimCause {
    /// One factor brings our value nearer to the paper's than all others, and by more than chance.
    Factor {
        /// Name of the factor.
        name: String,
        /// The change that the factor makes, in words.
        about: String,
        /// Our figure of the claim without the factor (the setting that may explain the difference), in the claim's unit.
        before: f64,
        /// Our figure of the claim with the factor, in the claim's unit, under the same seeds as the figure without it.
        after: f64,
        /// Confidence interval of the change of our figure by the factor, paired by seed and corrected for the number of tried
        /// factors.
        change: (f64, f64),
        /// Number of pairs: seeds with a figure both with and without the factor.
        pairs: usize,
        /// Number of factors that were tried.
        tried: usize,
        /// Verdict on the claim with the factor.
        verdict: Verdict,
        /// Settings in which the runs of these trials differ from the runs of our figure; empty if they are the same
        /// runs.
        set: String,
    },
    /// Factors were tried, and none is shown to bring our value nearer: their names, and the reason in words.
    Unexplained(Vec<String>, String),
    /// Our mean agrees with the claim without any factor, but its interval is too wide to show it.
    TooWide,
    /// No factor was tried on this claim.
    NotTried,
}

impl ClaimCause {
    /// The cause of a claim, from trials of one factor each. `None` if the claim needs no cause: it
    /// holds, nobody can judge it, or the paper is silent.
    pub(super) fn find(
        paper: &PaperEvaluation,
        judged: &JudgedClaim,
        trials: FactorTrials<'_>,
    ) -> Option<Self> {
        if !matches!(judged.verdict, Verdict::Fails | Verdict::Open) {
            return None;
        }
        if is_as_said(judged) {
            return Some(Self::TooWide);
        }
        let Some((before, tried)) = tried_factors(paper, judged, trials.readings) else {
            return Some(Self::NotTried);
        };
        if tried.is_empty() {
            return Some(Self::NotTried);
        }
        let unexplained = |why: String| {
            let names = tried.iter().map(|(reading, _)| reading.name()).collect();
            Some(Self::Unexplained(names, why))
        };
        if !trials.are_ours {
            let of_claim = |closer: &&CloserTrial| closer.says == judged.claim.says;
            return match trials.closer.iter().find(of_claim) {
                Some(closer) => match Self::from_closer(judged, closer) {
                    Ok(cause) => Some(cause),
                    Err(why) => unexplained(why),
                },
                None => unexplained("the trials are of other runs than the figure".to_owned()),
            };
        }
        let pairs = before.series.iter().map(count_samples).min().unwrap_or(0);
        if pairs < LEAST_PAIRS {
            return unexplained(format!(
                "a cause takes {LEAST_PAIRS} pairs of runs, here are {pairs}"
            ));
        }
        let enough = (1.0 - ENOUGH) * distance_to_claim(&before);
        let nearer = tried.iter().filter(|(_, after)| distance_to_claim(after) < enough);
        let shown = nearer.filter_map(|(reading, after)| {
            Some((reading, after, paired_change(&before, after, tried.len())?))
        });
        let nearest = shown
            .min_by(|(_, a, _), (_, b, _)| distance_to_claim(a).total_cmp(&distance_to_claim(b)));
        let Some((reading, after, change)) = nearest else {
            return unexplained("none is shown to bring it nearer".to_owned());
        };
        Some(Self::Factor {
            name: reading.name(),
            about: reading.about(),
            before: before.ours.mean,
            after: after.ours.mean,
            change,
            pairs,
            tried: tried.len(),
            // Trials resample no record: their intervals are too narrow for a verdict on such a
            // claim.
            verdict: match judged.claim.resamples {
                Some(_) => Verdict::Open,
                None => after.verdict,
            },
            set: String::new(),
        })
    }

    /// The cause of a claim that does not hold, as a closer trial of one factor shows it.
    ///
    /// # Errors
    ///
    /// The reason in words why the trial shows no cause.
    fn from_closer(judged: &JudgedClaim, closer: &CloserTrial) -> Result<Self, String> {
        let CloserTrial { without, with, tried, set, .. } = closer;
        let of = |reading: &PaperReading| same_claim(reading, judged);
        let (Some(before), Some(after)) = (of(without), of(with)) else {
            return Err(format!("with {} its cells can't be run", with.name()));
        };
        let (was, is) = (before.ours.mean, after.ours.mean);
        if is_as_said(&before) {
            return Err(format!(
                "in runs with {set} our figure is {was:.2}, which agrees with the paper without any factor"
            ));
        }
        let is_nearer = distance_to_claim(&after) < (1.0 - ENOUGH) * distance_to_claim(&before);
        let change = paired_change(&before, &after, *tried).filter(|_| is_nearer);
        let Some(change) = change else {
            let name = with.name();
            return Err(format!(
                "the factor that comes nearest, {name}, brings our figure no nearer in runs with {set} ({was:.2} without it, {is:.2} with it)"
            ));
        };
        Ok(Self::Factor {
            name: with.name(),
            about: with.about(),
            before: was,
            after: is,
            change,
            pairs: before.series.iter().map(count_samples).min().unwrap_or(0),
            tried: *tried,
            verdict: after.verdict,
            set: set.clone(),
        })
    }

    /// The cause of a claim that does not hold, in sentences for a page.
    pub(super) fn sentences(&self, beside: &str) -> String {
        let text = match self {
            Self::Factor { name, about, before, after, change, pairs, tried, verdict, set } => {
                let and = if *verdict == Verdict::Holds { ", and the claim holds" } else { "" };
                let (low, high) = change;
                let runs = in_runs(set);
                format!(
                    "Of {tried} factors {name} ({about}) brings it nearest: {before:.2} becomes {after:.2}{runs}{and}. \
                     Paired over {pairs} runs that changes it by {low:.2} to {high:.2}, with 95 % confidence for all \
                     {tried} together."
                )
            }
            Self::Unexplained(tried, why) => {
                format!("Tried {}, unexplained: {why}.", tried.len())
            }
            Self::TooWide => {
                "Our mean is as is said; its interval is too wide to show it.".to_owned()
            }
            Self::NotTried if beside.is_empty() => "No factor was tried.".to_owned(),
            Self::NotTried => String::new(),
        };
        [&text, beside].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The cause of a claim that does not hold, in words; `beside` tells which other causes were looked into.
    pub(super) fn words(&self, beside: &str) -> String {
        let words = match self {
            Self::Factor {
                name, before, after, change: (low, high), tried, verdict, set, ..
            } => {
                let and = if *verdict == Verdict::Holds { ", and then it holds" } else { "" };
                let runs = in_runs(set);
                format!(
                    "{name}: {before:.2} becomes {after:.2}{runs} (by {low:.2} to {high:.2}; of {tried} tried){and}"
                )
            }
            Self::Unexplained(tried, why) => {
                format!("tried {}, unexplained: {why} ({})", tried.len(), tried.join(", "))
            }
            Self::TooWide => "our mean is as is said, its interval too wide to show it".to_owned(),
            Self::NotTried if beside.is_empty() => "no factor was tried".to_owned(),
            Self::NotTried => return beside.to_owned(),
        };
        if beside.is_empty() { words } else { format!("{words}; {beside}") }
    }
}

/// Words on the runs of a trial that are not those of our figure: ` in runs with workload.jobs=3000`.
pub(super) fn in_runs(set: &str) -> String {
    if set.is_empty() { String::new() } else { format!(" in runs with {set}") }
}

/// The claim of `judged` as it was judged under another reading; `None` if the reading lacks it.
fn same_claim(reading: &PaperReading, judged: &JudgedClaim) -> Option<JudgedClaim> {
    let is_same = |other: &&JudgedClaim| other.claim.says == judged.claim.says;
    reading.claims.iter().find(is_same).cloned()
}

/// A claim as judged without any factor, and under each factor that was tried on it; `None` if no factor was tried.
fn tried_factors<'a>(
    paper: &PaperEvaluation,
    judged: &JudgedClaim,
    readings: &'a [PaperReading],
) -> Option<(JudgedClaim, Vec<(&'a PaperReading, JudgedClaim)>)> {
    let (without, tried) = readings.split_first()?;
    let before = same_claim(without, judged)?;
    // A counterfactual shows what something costs, and explains nothing.
    let explains = |reading: &&PaperReading| !reading.factors.iter().any(|of| of.counterfactual);
    let concerns = |reading: &&PaperReading| {
        reading.factors.iter().any(|of| paper.concerns(of, &judged.claim))
    };
    let tried = tried.iter().filter(explains).filter(concerns);
    let tried = tried.filter_map(|reading| Some((reading, same_claim(reading, judged)?)));
    Some((before, tried.collect()))
}

/// The factor under which a claim that needs a cause comes nearest in the trials, however few their runs are, and the
/// number of factors that were tried on it; `None` if the claim needs no cause, or no factor brings it nearer.
pub(super) fn nearest_factor(
    paper: &PaperEvaluation,
    judged: &JudgedClaim,
    trials: FactorTrials<'_>,
) -> Option<(ReadingFactor, usize)> {
    let needs = matches!(judged.verdict, Verdict::Fails | Verdict::Open) && !is_as_said(judged);
    let (before, tried) = tried_factors(paper, judged, trials.readings).filter(|_| needs)?;
    let distance = |(_, after): &(&PaperReading, JudgedClaim)| distance_to_claim(after);
    let nearest = tried.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let is_nearer = distance(nearest) < distance_to_claim(&before);
    let factor = nearest.0.factors.first().filter(|_| is_nearer)?;
    Some((factor.clone(), tried.len()))
}

/// Number of samples with a value.
fn count_samples(series: &Series) -> usize {
    series.each.iter().flatten().count()
}

/// Whether our mean agrees with the claim, in every cell of the claim.
fn is_as_said(judged: &JudgedClaim) -> bool {
    if judged.claim.is_about_each() {
        return cells_beside(judged) <= 0.0;
    }
    let ours = judged.ours.mean;
    match said(&judged.claim) {
        Said::Nothing => true,
        Said::Within { low, high } => (low..=high).contains(&ours),
        Said::Order { above, below } => {
            above.is_none_or(|x| ours > x) && below.is_none_or(|x| ours < x)
        }
    }
}

/// Interval of the change of a claim's figure by a factor, paired by sample, with the confidence that is left to each of `trials`
/// trials. For a claim about every cell, the figure is the sum over the cells that disagree. `None` if the interval does not lie on
/// the claim's side.
fn paired_change(before: &JudgedClaim, after: &JudgedClaim, trials: usize) -> Option<(f64, f64)> {
    if before.series.len() != after.series.len() {
        return None;
    }
    let short = |n: usize| Some(direction_to_claim(before, before.series[n].estimate()?.mean));
    let mut changes: Vec<Option<f64>> = Vec::new();
    let (mut direction, mut is_resampled) = (0.0, false);
    for (n, (was, is)) in before.series.iter().zip(&after.series).enumerate() {
        let side = short(n)?;
        if side == 0.0 || was.each.len() != is.each.len() {
            continue;
        }
        direction = side;
        is_resampled |= was.whole.is_some() || is.whole.is_some();
        let pairs = was.each.iter().zip(&is.each).map(|(was, is)| Some((*is)? - (*was)?));
        changes.resize(was.each.len(), Some(0.0));
        for (sum, change) in changes.iter_mut().zip(pairs) {
            *sum = sum.zip(change).map(|(sum, change)| sum + change);
        }
    }
    let changes: Vec<f64> = changes.into_iter().flatten().collect();
    if changes.len() < LEAST_PAIRS {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of trials and of samples")]
    let (confidence, n) = (1.0 - BY_CHANCE / trials.max(1) as f64, changes.len() as f64);
    let estimate = Estimate::with_confidence(&changes, confidence)?;
    let (low, high) = estimate.ci95?;
    // The certainty of a record's figure does not grow with the number of its resamples.
    let times = if is_resampled { n.sqrt() } else { 1.0 };
    let half = (high - low) / 2.0 * times;
    let (low, high) = (estimate.mean - half, estimate.mean + half);
    let is_shown = if direction > 0.0 { low > 0.0 } else { high < 0.0 };
    is_shown.then_some((low, high))
}

/// Direction from our figure to the claim: 1 up, −1 down, 0 if it agrees.
fn direction_to_claim(judged: &JudgedClaim, ours: f64) -> f64 {
    match said(&judged.claim) {
        Said::Nothing => 0.0,
        Said::Within { low, .. } if ours < low => 1.0,
        Said::Within { high, .. } if ours > high => -1.0,
        Said::Within { .. } => 0.0,
        Said::Order { above: Some(x), .. } if ours <= x => 1.0,
        Said::Order { below: Some(x), .. } if ours >= x => -1.0,
        Said::Order { .. } => 0.0,
    }
}

/// Number of cells whose mean disagrees with a claim about every cell.
fn cells_beside(judged: &JudgedClaim) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let all = judged.ours.n as f64;
    all - judged.ours.mean
}

/// Distance of our mean from the claim, in the claim's unit: from the printed figure, even within its tolerance; or from a bound
/// that our mean does not reach. For a claim about every cell, the number of cells that disagree.
fn distance_to_claim(judged: &JudgedClaim) -> f64 {
    let ours = judged.ours.mean;
    if judged.claim.is_about_each() {
        return cells_beside(judged);
    }
    match said(&judged.claim) {
        Said::Nothing => 0.0,
        Said::Within { low, high } if low.is_finite() => (ours - f64::midpoint(low, high)).abs(),
        Said::Within { high, .. } => (ours - high).max(0.0),
        Said::Order { above, below } => {
            let short =
                |bound: Option<f64>, by: f64| bound.map_or(0.0, |x| ((x - ours) * by).max(0.0));
            short(above, 1.0).max(short(below, -1.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::PaperClaim;
    use super::super::explained::ExplainedStatements;
    use super::super::factor::ReadingFactor;
    use super::*;

    /// A claim of 10 ± 1 that was judged with this verdict, with `samples` behind our estimate.
    fn judged(verdict: Verdict, samples: &[f64]) -> JudgedClaim {
        let claim = "says = \"s\"\ncase = \"\"\nname = \"\"\nmetric = \"x\"\nmeasure = \"value\"\nof = \"a\"\n\
                     over = \"mean\"\nfigure = [10.0]\nrelative = 0.1";
        let claim: PaperClaim = toml::from_str(claim).expect("it is right");
        let series = Series::of_runs(samples.iter().copied().map(Some).collect());
        let ours = series.estimate().expect("samples");
        JudgedClaim {
            claim,
            ours,
            verdict,
            how: String::new(),
            as_printed: None,
            readings: Vec::new(),
            former: None,
            each: Vec::new(),
            series: vec![series],
        }
    }

    /// Samples with about this mean. Their scatter around the mean is the same for every mean, like that of runs under
    /// the same seeds, except for a part of size `own`.
    fn runs(mean: f64, own: f64) -> Vec<f64> {
        let scatter = |n: u32| f64::from(n * 7 % 11) - 5.0 + own * (f64::from(n * 5 % 7) - 3.0);
        (0..33).map(|n| mean + scatter(n)).collect()
    }

    fn reading(name: Option<&str>, verdict: Verdict, samples: &[f64]) -> PaperReading {
        let factor = |name: &str| -> ReadingFactor {
            let changes = if name == "elsewhere" { "y" } else { "x" };
            let metrics = format!("metrics = {{ {changes} = \"z\" }}");
            toml::from_str(&format!("name = \"{name}\"\nabout = \"other {name}\"\n{metrics}"))
                .expect("it is right")
        };
        PaperReading {
            factors: name.map(factor).into_iter().collect(),
            rows: Vec::new(),
            claims: vec![judged(verdict, samples)],
            within: (0, 0),
            explained: ExplainedStatements::default(),
            is_whole: true,
        }
    }

    fn found(ours: &JudgedClaim, readings: &[PaperReading]) -> Option<ClaimCause> {
        let (paper, _) = super::super::named("opie").expect("it is there");
        ClaimCause::find(&paper, ours, FactorTrials { readings, are_ours: true, closer: &[] })
    }

    #[test]
    fn the_factor_that_is_shown_to_bring_ours_nearest_is_the_cause() {
        let fails = judged(Verdict::Fails, &runs(15.0, 0.0));
        let trials = [
            reading(None, Verdict::Fails, &runs(15.0, 0.0)),
            reading(Some("slow-boot"), Verdict::Fails, &runs(12.0, 0.1)),
            reading(Some("events"), Verdict::Open, &runs(10.5, 0.1)),
            reading(Some("away"), Verdict::Fails, &runs(25.0, 0.1)),
            // A factor of other figures says nothing of this claim, whatever its runs came to.
            reading(Some("elsewhere"), Verdict::Holds, &runs(10.0, 0.0)),
        ];
        let cause = found(&fails, &trials).expect("it fails");
        let words = cause.words("");
        assert!(words.starts_with("events: 15.") && words.contains("of 3 tried"), "{words}");
        let page = cause.sentences("The record is short.");
        assert!(page.contains("Of 3 factors events (other events) brings it nearest"), "{page}");
        assert!(page.ends_with("together. The record is short."), "{page}");
        let two = [trials[0].clone(), trials[3].clone(), trials[4].clone()];
        let none = found(&fails, &two).expect("it fails");
        assert_eq!(none.words(""), "tried 1, unexplained: none is shown to bring it nearer (away)");
        assert_eq!(found(&fails, &[]), Some(ClaimCause::NotTried));
        assert_eq!(ClaimCause::NotTried.words("the record is short"), "the record is short");
        assert_eq!(found(&judged(Verdict::Holds, &runs(10.0, 0.0)), &trials), None);
    }

    /// A factor is no cause if it brings our figure nearer to the paper's by chance only, if it was tried with too few
    /// runs, or if its trials had other runs than the figure.
    #[test]
    fn what_chance_brings_nearer_is_no_cause() {
        let before = runs(15.0, 0.0);
        let ours = judged(Verdict::Fails, &before);
        let none = reading(None, Verdict::Fails, &before);
        // 2 nearer, of a paired deviation of 20: two standard errors would be 7.
        let by_chance: Vec<f64> = before
            .iter()
            .zip(0_u32..)
            .map(|(x, n)| x - 2.0 + 10.0 * (f64::from(n * 5 % 7) - 3.0))
            .collect();
        let chance = [none.clone(), reading(Some("chance"), Verdict::Open, &by_chance)];
        assert!(matches!(found(&ours, &chance), Some(ClaimCause::Unexplained(..))));

        let near = reading(Some("near"), Verdict::Holds, &runs(10.0, 0.0));
        let real = [none.clone(), near.clone()];
        assert!(matches!(found(&ours, &real), Some(ClaimCause::Factor { pairs: 33, .. })));
        let (paper, _) = super::super::named("opie").expect("it is there");
        let others = FactorTrials { readings: &real, are_ours: false, closer: &[] };
        let cause = ClaimCause::find(&paper, &ours, others).expect("it fails");
        assert!(cause.words("").contains("other runs than the figure"), "{cause:?}");
        let few = [
            reading(None, Verdict::Fails, &before[..10]),
            reading(Some("near"), Verdict::Holds, &runs(10.0, 0.0)[..10]),
        ];
        let cause = found(&ours, &few).expect("it fails");
        assert!(cause.words("").contains("takes 30 pairs of runs, here are 10"), "{cause:?}");
    }

    /// If the trials had other runs than our figure, a factor is still a cause if a closer trial of it has enough pairs
    /// and its own figure without the factor disagrees with the claim. The words then tell the settings of those runs.
    #[test]
    fn a_closer_trial_of_other_runs_shows_a_cause_and_says_so() {
        let (paper, _) = super::super::named("opie").expect("it is there");
        let ours = judged(Verdict::Fails, &runs(15.0, 0.0));
        let few = |mean: f64| runs(mean, 0.0)[..2].to_vec();
        let none = reading(None, Verdict::Fails, &few(16.0));
        let trials = [
            none.clone(),
            reading(Some("away"), Verdict::Fails, &few(18.0)),
            reading(Some("near"), Verdict::Open, &few(11.0)),
        ];
        let all = FactorTrials { readings: &trials, are_ours: false, closer: &[] };
        let (lead, tried) = nearest_factor(&paper, &ours, all).expect("one is nearer");
        assert_eq!((&*lead.name, tried), ("near", 2));
        let holds = judged(Verdict::Holds, &runs(10.0, 0.0));
        assert!(nearest_factor(&paper, &holds, all).is_none(), "it needs no cause");
        let away = FactorTrials { readings: &trials[..2], ..all };
        assert!(nearest_factor(&paper, &ours, away).is_none(), "none is nearer");

        let closer = |without: f64, with: Vec<f64>| CloserTrial {
            says: "s".to_owned(),
            without: reading(None, Verdict::Fails, &runs(without, 0.0)),
            with: reading(Some("near"), Verdict::Holds, &with),
            tried: 2,
            set: "workload.jobs=3000".to_owned(),
        };
        let words = |closer: CloserTrial| {
            let all = FactorTrials { closer: &[closer], ..all };
            ClaimCause::find(&paper, &ours, all).expect("it fails").words("")
        };
        let shown = words(closer(16.0, runs(10.5, 0.1)));
        assert!(shown.starts_with("near: 16.00 becomes"), "{shown}");
        assert!(shown.contains("in runs with workload.jobs=3000 (by"), "{shown}");
        let as_said = words(closer(10.0, runs(10.0, 0.1)));
        assert!(as_said.contains("agrees with the paper without any factor"), "{as_said}");
        let by_chance = words(closer(16.0, runs(15.9, 0.1)));
        assert!(by_chance.contains("brings our figure no nearer"), "{by_chance}");
    }

    /// If our mean agrees with the claim, no cause is looked for, whatever the trials show.
    #[test]
    fn a_mean_that_is_as_said_has_no_cause() {
        let open = judged(Verdict::Open, &runs(10.5, 0.0));
        let trials = [
            reading(None, Verdict::Fails, &runs(15.0, 0.0)),
            reading(Some("near"), Verdict::Holds, &runs(10.0, 0.0)),
        ];
        assert_eq!(found(&open, &trials), Some(ClaimCause::TooWide));
    }
}
