//! Statements that a reading of a paper explains: figures and claims that our runs with it do not
//! contradict.
//!
//! A paper's mean of N runs and our mean of n differ by chance alone, by √(1/N + 1/n) standard
//! deviations: a printed figure contradicts ours if it is further away than 95 % of such
//! differences (the prediction interval; Student's t). With few runs of ours nearly nothing is
//! contradicted, and with one nothing at all, so that no reading explains more than another.

use dormouse_estimate::{Estimate, Verdict};

use super::as_printed::AsPrinted;
use super::claims::JudgedClaim;
use super::figures::FigureRow;
use super::paper::PaperEvaluation;

/// Number of standard deviations of chance by which a reading has to explain more statements than another to count as better. Of as
/// many readings as are tried, the best one is two or three deviations away by chance alone.
const BEYOND_CHANCE: f64 = 3.0;

/// Statements of a paper, and whether our runs contradict them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainedStatements {
    /// For each printed figure in the order of cells: true if it is not contradicted.
    figures: Vec<bool>,
    /// For each claim in the paper's order: true if it is not contradicted.
    claims: Vec<bool>,
}

impl ExplainedStatements {
    /// Tests the printed figures of `metrics`, without inputs, and the claims.
    pub(super) fn new(
        paper: &PaperEvaluation,
        rows: &[FigureRow],
        claims: &[JudgedClaim],
        metrics: &[&String],
    ) -> Self {
        let rows = rows.iter().filter(|row| !row.is_input && metrics.contains(&&row.metric));
        Self {
            figures: rows.filter_map(|row| is_possible_row(paper, row)).collect(),
            claims: claims.iter().filter_map(|of| is_possible_claim(paper, of)).collect(),
        }
    }

    /// Number of the paper's figures and claims that our runs do not contradict.
    #[must_use]
    pub fn count(&self) -> usize {
        self.statements().filter(|possible| *possible).count()
    }

    /// Number of the paper's figures and claims that were tested.
    #[must_use]
    pub fn total(&self) -> usize {
        self.figures.len() + self.claims.len()
    }

    /// Whether the reading explains more statements than `other`, by more than chance. If both readings were equally good, a
    /// statement that only one of them explains would be explained by either with the same probability (the sign test).
    pub(super) fn is_beyond_chance(&self, other: &Self) -> bool {
        if (self.figures.len(), self.claims.len()) != (other.figures.len(), other.claims.len()) {
            return false;
        }
        let (mut gained, mut lost) = (0_u32, 0_u32);
        for (ours, theirs) in self.statements().zip(other.statements()) {
            gained += u32::from(ours && !theirs);
            lost += u32::from(theirs && !ours);
        }
        let (gained, lost) = (f64::from(gained), f64::from(lost));
        gained - lost > BEYOND_CHANCE * (gained + lost).sqrt()
    }

    fn statements(&self) -> impl Iterator<Item = bool> + '_ {
        self.figures.iter().chain(&self.claims).copied()
    }
}

/// Whether a printed figure is not contradicted; `None` if the paper prints no figure, or our figure has no verdict.
fn is_possible_row(paper: &PaperEvaluation, row: &FigureRow) -> Option<bool> {
    let (printed, _) = row.paper?;
    let verdict = row.verdict?;
    let runs = paper.printed(&row.case, &row.metric).and_then(|(_, table)| table.runs);
    Some(match runs.or(paper.runs) {
        Some(runs) => {
            is_possible(&row.ours, (printed, paper.last_digit(&row.metric)), row.as_printed, runs)
        }
        None => verdict != Verdict::Fails,
    })
}

/// Whether a claim is not contradicted; `None` if it has no verdict.
fn is_possible_claim(paper: &PaperEvaluation, judged: &JudgedClaim) -> Option<bool> {
    if matches!(judged.verdict, Verdict::Silent | Verdict::Undecidable) {
        return None;
    }
    let figure = judged.claim.figure.first().zip(judged.claim.runs.or(paper.runs));
    Some(match figure {
        Some((&printed, runs)) => {
            is_possible(&judged.ours, (printed, 0.01), judged.as_printed, runs)
        }
        None => judged.verdict != Verdict::Fails,
    })
}

/// Whether a mean of `runs` runs could be the `printed` value, whose last digit is worth `digit`,
/// by our estimate.
fn is_possible(
    ours: &Estimate,
    (printed, digit): (f64, f64),
    few: Option<AsPrinted>,
    runs: usize,
) -> bool {
    if few.is_some_and(|few| few.is_within) {
        return true;
    }
    let Some((low, high)) = ours.ci95 else { return true };
    #[expect(clippy::cast_precision_loss, reason = "counts of runs")]
    let wider = (1.0 + ours.n as f64 / runs.max(1) as f64).sqrt();
    (printed - ours.mean).abs() <= (high - low) / 2.0 * wider + digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_estimate::Series;

    fn estimate(samples: &[f64]) -> Estimate {
        Series::of_runs(samples.iter().copied().map(Some).collect()).estimate().expect("samples")
    }

    /// Our three runs have a mean of 10 and a standard deviation of 1. The mean of another three runs is at most 4.30 ·
    /// √(2/3) = 3.51 away; beside thirty such runs of ours, at most 2.05 · √(1/3 + 1/30) · .83 = 1.03.
    #[test]
    fn what_contradicts_a_reading_depends_on_how_many_runs_there_are() {
        let (three, thirty) = (estimate(&[9.0, 10.0, 11.0]), [9.0, 10.0, 11.0].repeat(10));
        let thirty = estimate(&thirty);
        let is = |ours: &Estimate, printed| is_possible(ours, (printed, 0.0), None, 3);
        assert!(is(&three, 13.5) && !is(&three, 13.6));
        assert!(is(&thirty, 11.0) && !is(&thirty, 11.1), "{thirty:?}");
    }

    /// A reading that gains 12 statements and loses 1 is better by 11, more than 3 standard deviations of √13. One that
    /// gains 11 and loses 1 is better by 10, less than 3 of √12: that may be chance.
    #[test]
    fn a_few_statements_more_are_chance() {
        let of = |figures: &[bool]| ExplainedStatements {
            figures: figures.to_vec(),
            claims: vec![true],
        };
        let bare = of(&[[false; 12].as_slice(), &[true; 8]].concat());
        let with = |gained: usize, lost: usize| {
            let figure = |n: usize| if n < 12 { n < gained } else { n >= 12 + lost };
            of(&(0..20).map(figure).collect::<Vec<_>>()).is_beyond_chance(&bare)
        };
        assert!(with(12, 1) && with(10, 0) && !with(11, 1) && !with(8, 3) && !with(0, 0));
        assert!(
            !ExplainedStatements::default().is_beyond_chance(&bare),
            "there is nothing to compare"
        );
    }

    #[test]
    fn a_single_run_contradicts_nothing() {
        assert!(is_possible(&estimate(&[10.0]), (1e9, 0.0), None, 3));
        let few = AsPrinted { runs: 3, range: (1.0, 2.0), is_within: true };
        assert!(is_possible(&estimate(&[9.0, 10.0, 11.0]), (90.0, 0.0), Some(few), 3));
    }
}
