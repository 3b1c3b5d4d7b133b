//! Descriptions of a calibration in words.

use super::{Calibration, WantedErrors};

/// A fraction as a percentage, without meaningless digits.
pub(super) fn percent_text(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Mean and worst error of live tasks' times, given as fractions, in words; `None` becomes words that the load can't be run.
pub(super) fn errors_text(errors: Option<(f64, f64)>) -> String {
    match errors {
        Some((mean, worst)) => {
            format!("{:+.1} % at worst and {:+.2} % on average", worst * 100.0, mean * 100.0)
        }
        None => "it can't be run".to_owned(),
    }
}

impl Calibration {
    /// For each measured load, a sentence with the highest speed-up at which the errors are within `wanted`.
    #[must_use]
    pub fn highest_in_words(&self, wanted: &WantedErrors) -> Vec<String> {
        let (worst, mean) = (percent_text(wanted.worst), percent_text(wanted.mean));
        let of = |load| match self.highest(load, wanted) {
            Some(speedup) => format!(
                "at load {load} tasks err at most {worst} %, and {mean} % on average, up to \
                 speed-up {speedup}"
            ),
            None => format!(
                "at load {load} tasks err more than {worst} %, or {mean} % on average, at every \
                 speed-up measured"
            ),
        };
        self.loads().into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::table::tests::{calibration, cell};

    #[test]
    fn what_to_take_is_said_of_each_load() {
        let cells = [(10.0, 1.0, -0.06), (10.0, 0.5, 0.012), (30.0, 0.5, 0.05), (50.0, 0.5, 0.07)];
        let cells = cells.map(|(speedup, load, worst)| cell(speedup, load, worst));
        let said =
            calibration(cells.into()).highest_in_words(&WantedErrors { worst: 0.05, mean: 0.005 });
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("at load 1 tasks err more than 5 %, or 0.5 %"), "{said:?}");
        assert!(said[1].ends_with("up to speed-up 30"), "{said:?}");
    }
}
