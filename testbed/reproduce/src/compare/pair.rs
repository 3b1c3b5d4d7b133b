//! A scheduler's figure beside the first scheduler's, paired by seed.

use dormouse_analysis::{BetterSide, RunSample, series};
use dormouse_estimate::Estimate;
use dormouse_view::TextTone;
use dormouse_view::number::fixed;

use super::SchedulerComparison;
use crate::measures::ShownFigure;
use crate::sweep::Samples;

/// A scheduler's figure on an experiment beside the first scheduler's.
#[derive(Clone, Debug)]
pub struct FigurePair<'a> {
    /// Experiment on which both schedulers ran.
    pub on: &'a str,
    /// Scheduler that is compared with the first.
    pub scheduler: &'a str,
    /// Figure that is compared.
    pub measure: ShownFigure,
    /// Mean of the scheduler's compared figure over the runs that have it; an unfinished run has no makespan, for example.
    pub figure: Estimate,
    /// The figure of each run in order of seeds, or, for a single run, of each batch of jobs.
    pub each: Vec<Option<f64>>,
    /// Whether `each` has batches of jobs instead of runs.
    pub are_batches: bool,
    /// Number of runs.
    pub runs: usize,
    /// Difference from the first scheduler's figure for each seed; empty for the first scheduler.
    pub differences: Vec<Option<f64>>,
    /// Mean of the differences; `None` if no seed has both figures.
    pub difference: Option<Estimate>,
    /// Mean difference as a fraction of the first scheduler's mean; `None` also if that mean is zero.
    pub relative: Option<Estimate>,
    /// Number of seeds for which the figure is lower than the first scheduler's.
    pub lower: usize,
}

impl SchedulerComparison {
    /// Pairs of figures for every scheduler on every experiment: those of the figures `measures` that the samples
    /// have, in the order of `measures`.
    pub fn pairs(&self, samples: &Samples, measures: &[ShownFigure]) -> Vec<FigurePair<'_>> {
        let mut pairs = Vec::new();
        for (on, samples) in self.on.iter().zip(samples.chunks(self.schedulers.len())) {
            let Some(first) = samples.first() else { continue };
            for measure in measures {
                for (n, (scheduler, samples)) in self.schedulers.iter().zip(samples).enumerate() {
                    let against = (n > 0).then_some(first.as_slice());
                    pairs.extend(FigurePair::new((on, scheduler), *measure, samples, against));
                }
            }
        }
        pairs
    }
}

impl<'a> FigurePair<'a> {
    /// Makes a pair of a scheduler's figure, from `samples`, and the first scheduler's; `None` if no sample has the
    /// figure.
    fn new(
        (on, scheduler): (&'a str, &'a str),
        measure: ShownFigure,
        samples: &[RunSample],
        against: Option<&[RunSample]>,
    ) -> Option<Self> {
        let name = measure.metric.name;
        let own = series(samples, name);
        let figure = own.estimate()?;
        let first = against.map_or(Vec::new(), |samples| series(samples, name).each);
        let each: Vec<_> = own.each.iter().zip(&first).map(|(a, b)| (*a).zip(*b)).collect();
        let both = each.iter().flatten().copied();
        let (mine, theirs): (Vec<f64>, Vec<f64>) = both.unzip();
        let differences: Vec<f64> = mine.iter().zip(&theirs).map(|(a, b)| a - b).collect();
        let relative = Estimate::of_change(&theirs, &mine);
        Some(Self {
            on,
            scheduler,
            measure,
            figure,
            each: own.each,
            are_batches: own.are_batches,
            runs: samples.len(),
            differences: each.iter().map(|both| both.map(|(a, b)| a - b)).collect(),
            difference: Estimate::from_samples(&differences),
            relative,
            lower: differences.iter().filter(|d| **d < 0.0).count(),
        })
    }

    /// Whether the interval of the difference, as printed, excludes 0.
    pub fn is_shown(&self) -> bool {
        self.relative.or(self.difference).is_some_and(|d| d.ci95.is_some() && !d.covers(0.0))
    }

    pub(super) fn figure_in_words(&self) -> String {
        let Estimate { mean, ci95, n, .. } = self.figure;
        let number = |x: f64| fixed(self.measure.value(x), self.measure.digits());
        let interval = ci95.map(|(low, high)| format!(" [{}, {}]", number(low), number(high)));
        let few = if self.figure.is_of_too_few() { ", too few seeds for an interval" } else { "" };
        let of = (n < self.runs).then(|| format!(", of {n} of {} runs only", self.runs));
        format!("{}{}{few}{}", number(mean), interval.unwrap_or_default(), of.unwrap_or_default())
    }

    /// What the difference is in a word or two, for the scheduler of this pair, with whether that is good or bad news.
    pub(super) fn verdict(&self) -> (&'static str, TextTone) {
        let Some(difference) = self.difference else { return ("", TextTone::Plain) };
        let side = match difference.mean < 0.0 {
            true => BetterSide::Lower,
            false => BetterSide::Higher,
        };
        match (difference.range == (0.0, 0.0), self.is_shown(), self.measure.metric.better) {
            (true, ..) => ("the same", TextTone::Plain),
            (_, false, _) => ("not clearly different", TextTone::Plain),
            (_, true, None) if side == BetterSide::Lower => ("lower", TextTone::Plain),
            (_, true, None) => ("higher", TextTone::Plain),
            (_, true, Some(better)) if better == side => ("better", TextTone::Good),
            (_, true, Some(_)) => ("worse", TextTone::Bad),
        }
    }

    /// The difference in words, without what the verdict says.
    pub(super) fn change_in_words(&self) -> String {
        let words = self.in_words();
        words.strip_suffix(", may be chance").map_or(words.clone(), str::to_owned)
    }

    /// The difference in words, and whether it exceeds chance.
    pub fn in_words(&self) -> String {
        let Some(difference) = self.difference else { return String::new() };
        let digits = self.measure.digits();
        let text = match self.relative {
            Some(Estimate { mean, ci95: Some((low, high)), .. }) => {
                let percent = [mean, low, high].map(|part| format!("{:+.1}", part * 100.0));
                format!("{} % [{}, {}]", percent[0], percent[1], percent[2])
            }
            Some(Estimate { mean, .. }) => format!("{:+.1} %", mean * 100.0),
            None => format!("{:+.digits$}", self.measure.value(difference.mean)),
        };
        match difference.ci95 {
            None if difference.mean == 0.0 => "the same, a single seed".to_owned(),
            None => format!("{text}, a single seed"),
            Some((low, high)) if (low, high) == (0.0, 0.0) => "the same".to_owned(),
            Some(_) if self.relative.is_some_and(|of| of.is_of_too_few()) => {
                format!("{text}, too few seeds")
            }
            Some(_) if self.is_shown() => text,
            Some(_) => format!("{text}, may be chance"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::measures::ShownFigures;

    fn sample(makespan: f64) -> RunSample {
        let figures = [("makespan_s".to_owned(), makespan)].into();
        RunSample { figures, batches: [].into(), steps: 0, decisions: String::new() }
    }

    fn makespan() -> ShownFigure {
        let runs = vec![vec![sample(1.0)]];
        ShownFigures::of_runs(&runs, &[]).told[0]
    }

    fn pair(mine: &[f64], theirs: &[f64]) -> FigurePair<'static> {
        let of = |all: &[f64]| all.iter().copied().map(sample).collect::<Vec<_>>();
        FigurePair::new(("j60", "hads"), makespan(), &of(mine), Some(&of(theirs))).unwrap()
    }

    /// Two schedulers whose figures have overlapping intervals can differ in the same direction under every seed.
    #[test]
    fn differences_are_taken_seed_by_seed() {
        let pair = pair(&[102.0, 203.0, 302.0, 403.0], &[100.0, 200.0, 300.0, 400.0]);
        assert!(pair.is_shown() && pair.lower == 0, "{pair:?}");
        assert!((pair.difference.unwrap().mean - 2.5).abs() < 1e-9);
        assert!((pair.relative.unwrap().mean - 0.01).abs() < 1e-9, "{pair:?}");
        assert!(pair.in_words().starts_with("+1.0 % ["), "{}", pair.in_words());
        assert!(pair.figure.covers(250.0));
    }

    /// A makespan that is longer under every seed is worse, a shorter one better, and one that is now longer and now shorter
    /// is not clear.
    #[test]
    fn a_difference_has_a_verdict_in_a_word() {
        let first = [100.0, 200.0, 300.0, 400.0, 500.0];
        let verdict = |mine: [f64; 5]| pair(&mine, &first).verdict();
        assert_eq!(verdict(first.map(|x| x + 10.0)), ("worse", TextTone::Bad));
        assert_eq!(verdict(first.map(|x| x - 10.0)), ("better", TextTone::Good));
        assert_eq!(
            verdict([90.0, 230.0, 280.0, 420.0, 490.0]),
            ("not clearly different", TextTone::Plain)
        );
        assert_eq!(verdict(first), ("the same", TextTone::Plain));
        let unclear = pair(&[90.0, 115.0, 95.0], &[100.0, 100.0, 100.0]);
        assert!(!unclear.change_in_words().contains("chance"), "{}", unclear.change_in_words());
    }

    /// The mean of a scheduler with an unfinished run is followed by the number of runs that it covers.
    #[test]
    fn runs_without_a_figure_are_told_of() {
        let unfinished = RunSample { figures: [].into(), ..sample(0.0) };
        let samples = [sample(100.0), unfinished, sample(102.0)];
        let pair = FigurePair::new(("j60", "hads"), makespan(), &samples, None).unwrap();
        let said = pair.figure_in_words();
        assert!(said.starts_with("101 [") && said.ends_with(", of 2 of 3 runs only"), "{said}");
    }

    #[test]
    fn what_may_be_chance_is_said() {
        let chance = pair(&[90.0, 115.0, 95.0], &[100.0, 100.0, 100.0]);
        assert!(!chance.is_shown() && chance.lower == 2);
        assert!(chance.in_words().ends_with("may be chance"), "{}", chance.in_words());
        assert_eq!(pair(&[5.0, 6.0], &[5.0, 6.0]).in_words(), "the same");
        assert!(pair(&[5.0], &[4.0]).in_words().ends_with("a single seed"));
    }
}
