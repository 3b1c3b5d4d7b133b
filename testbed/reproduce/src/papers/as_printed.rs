//! Test of whether as few runs as a paper made could have printed its figure.
//!
//! A paper's mean of three runs has a spread of its own: it may be far from our well-known figure
//! by chance alone. The spread of means of as many of our runs is found by drawing them (the
//! bootstrap, Efron 1979).

use dormouse_estimate::{Verdict, middle95};
use dormouse_units::RandomStream;

use super::claim::{CellCombination, ClaimMeasure};

/// Number of means that are drawn for a range; its borders are then known to some hundredths of its width.
const DRAWS: usize = 2_000;

/// Probability below which a zero that a paper prints contradicts our runs.
const RARE: f64 = 0.05;

/// A figure that a paper prints, beside the range that our figure would have as a mean of as many runs as the paper
/// averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsPrinted {
    /// Number of runs that the paper averaged.
    pub runs: usize,
    /// Middle 95 % of the values that our figure takes as a mean of `runs` runs.
    pub range: (f64, f64),
    /// Whether the printed figure lies in `range`, widened by the worth of its last printed digit.
    pub is_within: bool,
}

/// Samples of a cell and of the cell that it is compared with, paired by seed.
#[derive(Clone, Debug)]
pub(super) struct PairedSamples {
    of: Vec<f64>,
    than: Vec<f64>,
}

impl PairedSamples {
    /// Samples of a single cell; runs without the figure are left out.
    pub(super) fn alone(of: &[Option<f64>]) -> Self {
        let of: Vec<f64> = of.iter().flatten().copied().collect();
        Self { than: of.clone(), of }
    }

    /// Samples of two cells with the same seeds; seeds without one of the figures are left out.
    pub(super) fn new(of: &[Option<f64>], than: &[Option<f64>]) -> Self {
        let pairs = of.iter().zip(than).filter_map(|(of, than)| Some(((*of)?, (*than)?)));
        let (of, than) = pairs.unzip();
        Self { of, than }
    }

    /// The measure of the means of `runs` samples, drawn with replacement.
    #[expect(clippy::cast_precision_loss, reason = "a count of runs")]
    fn draw_measure(&self, runs: usize, measure: ClaimMeasure, chance: &mut RandomStream) -> f64 {
        let (mut of, mut than) = (0.0, 0.0);
        for _ in 0..runs {
            let n = chance.draw_below(self.of.len());
            of += self.of[n];
            than += self.than[n];
        }
        measure.value([of / runs as f64, than / runs as f64])
    }
}

/// Compares the printed figure, whose last digit is worth `digit`, with the range that our figure has if each cell is
/// the mean of `runs` runs. `None` if that range can't be drawn: the measure is not one of means, or a cell has fewer
/// than two runs.
pub(super) fn as_printed(
    cells: &[PairedSamples],
    (measure, over): (ClaimMeasure, CellCombination),
    (printed, digit): (f64, f64),
    (runs, name): (usize, &str),
) -> Option<AsPrinted> {
    let of_means = match measure {
        ClaimMeasure::Value
        | ClaimMeasure::PercentBelow
        | ClaimMeasure::PercentAbove
        | ClaimMeasure::Less
        | ClaimMeasure::Ratio => over != CellCombination::Each,
        ClaimMeasure::Worst | ClaimMeasure::Slope | ClaimMeasure::BreakEven => false,
    };
    if !of_means || runs == 0 || cells.is_empty() || cells.iter().any(|cell| cell.of.len() < 2) {
        return None;
    }
    let mut chance = RandomStream::named_stream(1, "as printed", name);
    let drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let each: Vec<f64> =
                cells.iter().map(|cell| cell.draw_measure(runs, measure, &mut chance)).collect();
            over.combine(&each)
        })
        .collect();
    let range = middle95(&drawn)?;
    let is_within = range.0 - digit <= printed && printed <= range.1 + digit;
    Some(AsPrinted { runs, range, is_within })
}

/// Verdict on a printed zero, which is the mean of `runs` counts, with the probability that as many of our runs all
/// count zero. A printed zero contradicts our runs only if that probability is below [`RARE`]; the share of zeros among
/// our `samples` is known by Wilson's interval. `None` if there is no such interval.
pub(super) fn printed_zero(samples: &[Option<f64>], runs: usize) -> Option<(Verdict, f64)> {
    let zero = |x: &f64| if *x == 0.0 { 1.0 } else { 0.0 };
    let zeros: Vec<f64> = samples.iter().flatten().map(zero).collect();
    let share = dormouse_estimate::Estimate::share(&zeros)?;
    let (low, high) = share.ci95?;
    let all = |share: f64| share.powi(i32::try_from(runs).unwrap_or(i32::MAX));
    let verdict = match () {
        () if all(low) >= RARE => Verdict::Holds,
        () if all(high) < RARE => Verdict::Fails,
        () => Verdict::Open,
    };
    Some((verdict, all(share.mean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(samples: &[f64]) -> PairedSamples {
        PairedSamples::alone(&samples.iter().copied().map(Some).collect::<Vec<_>>())
    }

    fn value(cells: &[PairedSamples], printed: f64, runs: usize) -> AsPrinted {
        as_printed(
            cells,
            (ClaimMeasure::Value, CellCombination::Mean),
            (printed, 0.01),
            (runs, "test"),
        )
        .expect("it can be drawn")
    }

    #[test]
    fn a_mean_of_three_is_less_well_known_than_one_of_thirty() {
        let samples: Vec<f64> = (0..100).map(f64::from).collect();
        let (three, thirty) =
            (value(&[alone(&samples)], 20.0, 3), value(&[alone(&samples)], 20.0, 30));
        // Of three uniform draws the standard deviation is 28.9 / √3 = 16.7.
        assert!(
            (three.range.0 - 18.0).abs() < 3.0 && (three.range.1 - 81.0).abs() < 3.0,
            "{three:?}"
        );
        assert!(three.is_within && !thirty.is_within, "{three:?} {thirty:?}");
        assert_eq!(value(&[alone(&samples)], 20.0, 3), three, "the same draws each time");
    }

    #[test]
    fn the_last_printed_digit_is_a_margin() {
        // Two of three, which a paper prints as .66.
        let cells = [alone(&[2.0 / 3.0; 10])];
        assert!(value(&cells, 0.66, 3).is_within && !value(&cells, 0.65, 3).is_within);
    }

    #[test]
    fn pairs_are_drawn_together() {
        let (of, than): (Vec<_>, Vec<_>) =
            (1..=50).map(|n| (Some(f64::from(n)), Some(2.0 * f64::from(n)))).unzip();
        let cells = [PairedSamples::new(&of, &than)];
        let below = (ClaimMeasure::PercentBelow, CellCombination::Mean);
        let ours = as_printed(&cells, below, (50.0, 0.01), (3, "test")).expect("it can be drawn");
        assert!((ours.range.0 - 50.0).abs() < 1e-9 && (ours.range.1 - 50.0).abs() < 1e-9);
        for measure in [ClaimMeasure::Worst, ClaimMeasure::BreakEven] {
            assert_eq!(
                as_printed(&cells, (measure, CellCombination::Mean), (1.0, 0.0), (3, "test")),
                None
            );
        }
        assert_eq!(as_printed(&[alone(&[1.0])], below, (1.0, 0.0), (3, "test")), None);
    }

    #[test]
    fn a_printed_zero_is_judged_by_its_probability() {
        let zeros = |zeros: usize, of: usize| -> Vec<Option<f64>> {
            (0..of).map(|n| Some(if n < zeros { 0.0 } else { 2.0 })).collect()
        };
        // Three in four runs count zero: three in a row are no wonder.
        let (verdict, probability) = printed_zero(&zeros(75, 100), 3).expect("there are runs");
        assert_eq!(verdict, Verdict::Holds);
        assert!((probability - 0.421_875).abs() < 1e-12);
        assert_eq!(printed_zero(&zeros(10, 100), 3).map(|of| of.0), Some(Verdict::Fails));
        assert_eq!(printed_zero(&zeros(3, 8), 3).map(|of| of.0), Some(Verdict::Open));
        assert_eq!(printed_zero(&zeros(1, 1), 3), None);
    }
}
