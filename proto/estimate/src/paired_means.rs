//! Statistics of means over the same seeds, such as by how many per cent one mean is below another.
//!
//! A paper that states "25 % less on average" divides two means. The mean of each seed's ratio is a
//! different quantity, in which a seed with a small denominator counts more.

use crate::amounts::{FEWEST, middle_of_resamples};
use crate::estimate::Estimate;

/// The jackknife's pseudo-values of a statistic of the means of several paired figures, shifted so
/// that their mean is the statistic. `samples` has a row per sample. Empty if there are no samples.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of samples")]
pub fn pseudo_values(samples: &[Vec<f64>], statistic: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let n = samples.len();
    let Some(sums) = sums_of(samples, &all_indices(n)) else { return Vec::new() };
    let whole = statistic(&divide_sums(&sums, n));
    if n < 2 {
        return vec![whole];
    }
    let without = |row: &Vec<f64>| {
        let rest: Vec<f64> = sums.iter().zip(row).map(|(sum, x)| sum - x).collect();
        n as f64 * whole - (n - 1) as f64 * statistic(&divide_sums(&rest, n - 1))
    };
    let values: Vec<f64> = samples.iter().map(without).collect();
    let moved = whole - values.iter().sum::<f64>() / n as f64;
    values.into_iter().map(|value| value + moved).collect()
}

impl Estimate {
    /// A statistic of the means of several paired figures (`samples` has a row per sample) with the
    /// interval of a paired bootstrap: rows are drawn with replacement, and the ends are widened
    /// for few samples (Hesterberg, The American Statistician 69, 2015). For fewer than [`FEWEST`]
    /// samples the interval is Student's of the jackknife's pseudo-values. `None` if there are no
    /// samples; without an interval if the statistic is not a number.
    #[must_use]
    pub fn of_means(samples: &[Vec<f64>], statistic: impl Fn(&[f64]) -> f64) -> Option<Self> {
        let n = samples.len();
        let whole = statistic(&divide_sums(&sums_of(samples, &all_indices(n))?, n));
        let each: Vec<f64> = samples.iter().map(|row| statistic(row)).collect();
        let range = Self::from_samples(&each)?.range;
        if !whole.is_finite() {
            return Some(Self { range, ..Self::exact(whole, n) });
        }
        let ci95 = if n >= FEWEST {
            let of_places = |places: &[usize]| {
                sums_of(samples, places).map_or(f64::NAN, |sums| statistic(&divide_sums(&sums, n)))
            };
            middle_of_resamples(n, of_places)
        } else {
            Self::from_samples(&pseudo_values(samples, statistic)).and_then(|of| of.ci95)
        };
        Some(Self { mean: whole, ci95, range, n, is_saturated: false })
    }
}

/// Sums of the columns over the rows with these indices; `None` if there are none.
fn sums_of(samples: &[Vec<f64>], places: &[usize]) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; samples.first()?.len()];
    for &place in places {
        for (sum, x) in sums.iter_mut().zip(&samples[place]) {
            *sum += x;
        }
    }
    Some(sums)
}

/// Indices of all rows.
fn all_indices(n: usize) -> Vec<usize> {
    (0..n).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of samples")]
fn divide_sums(sums: &[f64], n: usize) -> Vec<f64> {
    sums.iter().map(|sum| sum / n as f64).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn above(means: &[f64]) -> f64 {
        100.0 * (means[0] / means[1] - 1.0)
    }

    /// Costs under one seed are 1 against 0.5, under nine seeds 10 against 10: the ratios of the seeds are 10 % on
    /// average, but the means differ by half a dollar in ninety.
    #[test]
    fn a_ratio_of_means_is_not_the_mean_of_ratios() {
        let mut samples = vec![vec![10.0, 10.0]; 9];
        samples.push(vec![1.0, 0.5]);
        let ours = Estimate::of_means(&samples, above).unwrap();
        assert!((ours.mean - 100.0 * 0.5 / 90.5).abs() < 1e-9, "{ours:?}");
        let (low, high) = ours.ci95.unwrap();
        assert!(low.abs() < 1e-9 && (0.55..3.5).contains(&high), "{ours:?}");
        assert_eq!(Estimate::of_means(&samples, above), Some(ours), "the same draws each time");
    }

    /// A variation that both figures of a seed have in common widens no interval.
    #[test]
    fn seeds_are_drawn_with_both_their_figures() {
        let paired: Vec<Vec<f64>> =
            (1..=30).map(|n| vec![f64::from(n), f64::from(2 * n)]).collect();
        let (low, high) = Estimate::of_means(&paired, above).unwrap().ci95.unwrap();
        assert!((low + 50.0).abs() < 1e-9 && (high + 50.0).abs() < 1e-9, "{low} {high}");
        let few = Estimate::of_means(&paired[..2], above).unwrap();
        assert!((few.mean + 50.0).abs() < 1e-9 && few.ci95.is_some_and(|(a, b)| b - a < 1e-9));
        assert_eq!(Estimate::of_means(&paired[..1], above).unwrap().ci95, None);
        assert_eq!(Estimate::of_means(&[], above), None);
    }

    /// Student's interval of the pseudo-values and the bootstrap's interval agree if samples are many and not skewed.
    #[test]
    fn the_pseudo_values_are_about_the_statistic_and_as_wide_as_the_bootstrap() {
        let samples: Vec<Vec<f64>> = (0..40)
            .map(|n| vec![20.0 + f64::from(n * 7 % 11), 30.0 + f64::from(n * 5 % 13)])
            .collect();
        let (ours, values) =
            (Estimate::of_means(&samples, above).unwrap(), pseudo_values(&samples, above));
        let students = Estimate::from_samples(&values).unwrap();
        assert!((ours.mean - students.mean).abs() < 1e-9, "{ours:?} {students:?}");
        let wide = |of: Estimate| of.ci95.map(|(low, high)| high - low).unwrap();
        assert!((wide(ours) / wide(students) - 1.0).abs() < 0.1, "{ours:?} {students:?}");
    }

    #[test]
    fn a_ratio_to_nothing_has_no_interval() {
        let ours = Estimate::of_means(&vec![vec![1.0, 0.0]; 9], above).unwrap();
        assert!(ours.ci95.is_none() && !ours.mean.is_finite(), "{ours:?}");
    }
}
