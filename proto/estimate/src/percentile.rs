//! Percentile intervals of resamples.

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
    fn the_middle_of_a_thousand_and_one() {
        let values: Vec<f64> = (0..=1_000).rev().map(f64::from).collect();
        assert_eq!(middle95(&values), Some((25.0, 975.0)));
        let (low, high) = middle95(&values[..=99]).expect("enough");
        assert!((low - 903.475).abs() < 1e-9 && (high - 997.525).abs() < 1e-9, "{low} {high}");
        assert_eq!(middle95(&values[..39]), None);
    }
}
