//! Estimates whose samples are resamples of one record (Efron, Annals of Statistics 7, 1979).

use crate::estimate::Estimate;
use crate::percentile::middle95;

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
}
