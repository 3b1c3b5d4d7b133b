//! Small computations for sentences: ratios, means, percentages.

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Converts microseconds to seconds.
pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// Sum of times in microseconds; saturating, since a damaged log may hold any numbers.
pub(super) fn total_us(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(0, u64::saturating_add)
}

/// Mean of the values; 0 for an empty input.
pub(super) fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = of.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    sum / f64::max(n, 1.0)
}

/// A part as a percentage with one decimal.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Adds the first of several findings to the notes, with the number of the others.
pub(super) fn note_first(found: &[String], what: &str, notes: &mut Vec<String>) {
    if let Some(first) = found.first() {
        let more = match found.len() {
            1 => String::new(),
            n => format!(" (and {} more {what})", n - 1),
        };
        notes.push(format!("{first}{more}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_a_hostile_log_is_the_largest_number() {
        assert_eq!(total_us([1, 2].into_iter()), 3);
        assert_eq!(total_us([u64::MAX, 1].into_iter()), u64::MAX);
    }
}
