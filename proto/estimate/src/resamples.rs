//! Estimates whose samples are resamples of one record (Efron, Annals of Statistics 7, 1979), and their percentile
//! intervals.

use crate::estimate::Estimate;

/// Estimate of a figure of a whole record from its values on resamples, of which `asked` were made. The interval is the
/// middle 95 % of these values, or, for fewer than 40 values, Student's prediction interval of one more value. If more
/// than one resample in twenty lacks the figure there is no interval, since the others are a biased choice.
pub(crate) fn of_resamples(whole: f64, samples: &[f64], asked: usize) -> Estimate {
    let none = Estimate::exact(whole, samples.len());
    let Some(spread) = Estimate::from_samples(samples).filter(|_| samples.len() * 20 >= asked * 19)
    else {
        return none;
    };
    #[expect(clippy::cast_precision_loss, reason = "a count of resamples")]
    let more = (samples.len() as f64).sqrt();
    let one_more = |(low, high): (f64, f64)| {
        let half = (high - low) / 2.0 * more;
        (whole - half, whole + half)
    };
    let ci95 = middle95(samples).or_else(|| spread.ci95.map(one_more));
    Estimate { ci95, range: spread.range, ..none }
}

/// Ends of the middle 95 % of these values, interpolated between neighbours; `None` for fewer than 40 values, too few
/// for such ends.
#[must_use]
pub fn middle95(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 40 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((interpolated_quantile(&sorted, 0.025), interpolated_quantile(&sorted, 0.975)))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among values"
)]
pub(crate) fn interpolated_quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = sorted[place as usize];
    let above = sorted.get(place as usize + 1).copied().unwrap_or(below);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_middle_of_the_resamples_and_the_figure_that_of_the_whole() {
        let samples: Vec<f64> = (0..=1_000).map(f64::from).collect();
        let ours = of_resamples(400.0, &samples, samples.len());
        assert_eq!((ours.mean, ours.ci95, ours.n), (400.0, Some((25.0, 975.0)), 1_001));
    }

    #[test]
    fn of_few_resamples_it_is_students_and_does_not_shrink_with_their_number() {
        let half = |n: usize| {
            let samples: Vec<f64> = [-1.0, 1.0].repeat(n);
            let (low, high) = of_resamples(5.0, &samples, 2 * n).ci95.expect("some");
            assert!((f64::midpoint(low, high) - 5.0).abs() < 1e-12);
            (high - low) / 2.0
        };
        // Student's 2.262 and 2.093 of 10 and 20 samples, times their deviation.
        assert!((half(5) - 2.262 * (10.0_f64 / 9.0).sqrt()).abs() < 1e-3, "{}", half(5));
        assert!((half(10) - 2.093 * (20.0_f64 / 19.0).sqrt()).abs() < 1e-3, "{}", half(10));
    }

    #[test]
    fn resamples_that_lack_the_figure_are_no_reason_to_believe_the_others() {
        let has = |n: usize| of_resamples(0.0, &vec![1.0; n], 100).ci95.is_some();
        assert_eq!([has(100), has(95), has(94), has(0)], [true, true, false, false]);
        assert_eq!(of_resamples(2.0, &[1.0], 1).ci95, None);
    }

    #[test]
    fn the_middle_of_a_thousand_and_one() {
        let values: Vec<f64> = (0..=1_000).rev().map(f64::from).collect();
        assert_eq!(middle95(&values), Some((25.0, 975.0)));
        let (low, high) = middle95(&values[..=99]).expect("enough");
        assert!((low - 903.475).abs() < 1e-9 && (high - 997.525).abs() < 1e-9, "{low} {high}");
        assert_eq!(middle95(&values[..39]), None);
    }
}
