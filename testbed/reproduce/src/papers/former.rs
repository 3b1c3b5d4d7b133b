//! Claims judged by the earlier rule for verdicts: a ratio was the mean of the ratios of all seeds, and a tolerance was
//! a fraction of the printed figure even if the figure is a difference in per cent. Beside the present verdicts, these
//! show on the same samples what the rule alone changes.

use dormouse_estimate::{Estimate, Verdict};

use super::claim::PaperClaim;
use super::claims::judge_claim;
use super::paper::PaperEvaluation;
use super::results::CellResults;
use super::tolerance::QuantityKind;

/// Verdict on a claim by the earlier rule for verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct FormerJudging {
    /// Our estimate by the earlier rule; for a claim about each of several cells, the number of cells that agree.
    pub ours: Estimate,
    /// The verdict on the claim by the earlier rule for verdicts.
    pub verdict: Verdict,
    /// Reason why the present rule gives another verdict, in words; empty if the verdict is the same.
    pub because: &'static str,
}

/// Reason why the verdicts by the earlier and the present rule differ: the estimator alone.
const ESTIMATOR: &str = "means are compared, not each seed's own ratio";

/// Reason why the verdicts by the earlier and the present rule differ: the tolerance alone.
const TOLERANCE: &str =
    "the tolerance of a difference in per cent is in points, and of what is stated its rounding";

/// Reason why the verdicts by the earlier and the present rule differ: estimator and tolerance, only both together, or each alone.
const BOTH: &str = "means are compared, and with another tolerance";

impl FormerJudging {
    /// Judges a claim by the earlier rule; `None` if the rule makes no difference for the claim, or the claim can't be
    /// judged.
    pub(super) fn new(
        claim: &PaperClaim,
        today: Verdict,
        paper: &PaperEvaluation,
        results: &CellResults,
    ) -> Option<Self> {
        if matches!(today, Verdict::Silent | Verdict::Undecidable) {
            return None;
        }
        let relative = claim.kind.map(former_part).filter(|_| claim.relative.is_none());
        let is_ratio = claim.measure.is_ratio();
        if !is_ratio && relative.is_none() {
            return None;
        }
        let judge = |by_seed: bool, relative: Option<f64>| {
            let relative = relative.or(claim.relative);
            let former = PaperClaim { ratios_by_seed: by_seed, relative, ..claim.clone() };
            judge_claim(former, paper, results)
        };
        let former = judge(is_ratio, relative)?;
        let changes = |other: Option<Verdict>| other.is_some_and(|verdict| verdict != today);
        let of_estimator = changes(judge(is_ratio, None).map(|of| of.verdict));
        let of_tolerance = changes(judge(false, relative).map(|of| of.verdict));
        let because = match (of_estimator, of_tolerance) {
            _ if former.verdict == today => "",
            (true, false) => ESTIMATOR,
            (false, true) => TOLERANCE,
            _ => BOTH,
        };
        Some(Self { ours: former.ours, verdict: former.verdict, because })
    }
}

/// Tolerance of the earlier rule, as a fraction of the figure.
const fn former_part(kind: QuantityKind) -> f64 {
    match kind {
        QuantityKind::Stated | QuantityKind::Computed => 0.05,
        QuantityKind::Measured | QuantityKind::Counted => 0.15,
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::judge_all;
    use super::super::results::tests::of_runs;
    use super::*;

    fn judged(claim: &str, of: &[f64], than: &[f64]) -> (Verdict, Option<FormerJudging>) {
        let data = format!(
            "name = \"p\"\ntitle = \"\"\nsource = \"\"\nabout = []\nsamples = \"\"\nmore = \"more seeds\"\n\
             part = []\n[[claim]]\nsays = \"s\"\ncase = \"\"\nname = \"\"\nmetric = \"x\"\nof = \"a\"\n{claim}"
        );
        let paper: PaperEvaluation = toml::from_str(&data).expect("it is right");
        let results = of_runs("x", &[("a", of), ("b", than)]);
        let claims = judge_all(&paper, &results);
        (claims[0].verdict, claims[0].former.clone())
    }

    const BELOW: &str = "measure = \"percent-below\"\nthan = \"b\"\nover = \"mean\"\nfigure = [20.0]\nkind = \"measured\"";

    /// Our figure is 28 % lower where the paper prints 20 %: within 15 percentage points of the paper's figure (the
    /// present rule), but not within 15 % of it (the earlier rule).
    #[test]
    fn a_difference_in_per_cent_had_a_tolerance_of_its_own_part() {
        let (today, former) = judged(BELOW, &[72.0, 72.1, 71.9, 72.0], &[100.0; 4]);
        let former = former.expect("the rule differs");
        assert_eq!((today, former.verdict), (Verdict::Holds, Verdict::Fails));
        assert_eq!(former.because, TOLERANCE);
    }

    /// Two seeds have the ratios 1/2 and 9/6: the mean of the ratios (earlier rule) is 1, the ratio of the means
    /// (present rule) is 10/8.
    #[test]
    fn each_seeds_own_ratio_was_averaged() {
        let of: Vec<f64> = [1.0, 9.0].repeat(20);
        let than: Vec<f64> = [2.0, 6.0].repeat(20);
        let claim = "measure = \"ratio\"\nthan = \"b\"\nover = \"mean\"\nabove = 1.02";
        let (today, former) = judged(claim, &of, &than);
        let former = former.expect("the rule differs");
        assert!((former.ours.mean - 1.0).abs() < 1e-9, "{former:?}");
        assert_eq!((today, former.verdict), (Verdict::Holds, Verdict::Open));
        assert_eq!(former.because, ESTIMATOR);
    }

    #[test]
    fn what_no_rule_changes_has_no_former_verdict() {
        let claim = "measure = \"value\"\nover = \"mean\"\nabove = 1";
        assert_eq!(judged(claim, &[2.0, 2.1], &[1.0, 1.0]).1, None);
        let same =
            judged(BELOW, &[80.0, 80.1, 79.9, 80.0], &[100.0; 4]).1.expect("the rule differs");
        assert_eq!((same.verdict, same.because), (Verdict::Holds, ""));
    }
}
