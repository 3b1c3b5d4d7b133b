//! Tolerances of printed figures: one rule for all papers, stated before the judged runs are made.

use serde::Deserialize;

use super::claim::ClaimMeasure;
use super::paper::FigureTolerance;

/// The rule for the tolerances of claims' figures, as pages print it.
pub const TOLERANCE_RULE: &str = "The tolerance of a claim's figure follows from one rule. What the text states of a model, a formula \
    or a choice without measurement may differ by the rounding of what is printed, half of its last digit. What is \
    computed or simulated from a record, a workload or a price that we have only like the authors' may differ by 5 %, \
    what was measured on their machines by 15 %, as means of three of our own runs scatter, and a small number of events \
    that was counted there and averaged over a few runs by 50 %, as such means scatter; none by less than the rounding. A difference of two figures in per cent may differ by as many points, since each of the two figures may be \
    so far off. What is said as a bound has no tolerance.";

/// Kind of a printed quantity, which determines its tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuantityKind {
    /// The paper states the figure of a model or a choice: only the figure's rounding is uncertain.
    Stated,
    /// The paper's figure was computed or simulated from inputs that ours only resemble.
    Computed,
    /// The paper's figure was measured on the authors' machines.
    Measured,
    /// The paper's figure is a small number of events on the authors' machines, as the mean of a few runs.
    Counted,
}

impl QuantityKind {
    /// Tolerance of a figure of this kind with this measure, whose last printed digit is worth
    /// `digit`.
    pub(super) fn tolerance(
        self,
        measure: ClaimMeasure,
        figure: f64,
        digit: f64,
    ) -> FigureTolerance {
        let part: f64 = match self {
            Self::Stated => return FigureTolerance::Points(digit / 2.0),
            Self::Computed => 0.05,
            Self::Measured => 0.15,
            Self::Counted => 0.5,
        };
        if matches!(measure, ClaimMeasure::PercentBelow | ClaimMeasure::PercentAbove) {
            return FigureTolerance::Points((100.0_f64 * part).max(digit / 2.0));
        }
        match part * figure.abs() {
            far if far < digit / 2.0 => FigureTolerance::Points(digit / 2.0),
            _ => FigureTolerance::Relative(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_follows_from_the_kind_and_the_rounding() {
        let of =
            |kind: QuantityKind, measure, figure, digit| kind.tolerance(measure, figure, digit);
        let value = ClaimMeasure::Value;
        assert_eq!(of(QuantityKind::Stated, value, 3.0, 1.0), FigureTolerance::Points(0.5));
        assert_eq!(
            of(QuantityKind::Measured, value, 2_300.0, 1.0),
            FigureTolerance::Relative(0.15)
        );
        assert_eq!(of(QuantityKind::Measured, value, 3.0, 1.0), FigureTolerance::Points(0.5));
        assert_eq!(of(QuantityKind::Counted, value, 1.33, 0.01), FigureTolerance::Relative(0.5));
        assert_eq!(of(QuantityKind::Counted, value, 0.0, 0.01), FigureTolerance::Points(0.005));
        let below = ClaimMeasure::PercentBelow;
        assert_eq!(of(QuantityKind::Measured, below, 44.37, 0.01), FigureTolerance::Points(15.0));
        assert_eq!(of(QuantityKind::Computed, below, 23.1, 0.1), FigureTolerance::Points(5.0));
    }
}
