//! The largest and the smallest speed-up at which the hosts hold a run.

use dormouse_units::Speedup;

use super::{AdmissionRequest, RunAdmission};

/// Smallest speed-up (ratio of emulated to real time) at which a run may be admitted.
const LEAST: f64 = 0.001;

impl AdmissionRequest<'_> {
    /// Returns the admission at the smallest speed-up; `None`: the hosts can't hold the run at any.
    #[must_use]
    pub fn at_slowest(&self) -> Option<RunAdmission> {
        self.admit_at(LEAST)
    }

    /// Returns the largest whole speed-up at which the hosts hold the run; `None`: not even at 1. What fits at one
    /// speed-up fits at every lower one.
    #[must_use]
    pub fn fastest_speedup(&self) -> Option<f64> {
        highest_fitting(|speedup| self.admit_at(speedup).is_some())
    }

    fn admit_at(&self, speedup: f64) -> Option<RunAdmission> {
        Self { speedup: Speedup::from_f64(speedup)?, ..*self }.admit_run().ok()
    }
}

fn highest_fitting(fits: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (0_u32, 1_000_000);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(f64::from(middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    (low > 0).then(|| f64::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_that_fits_is_found() {
        for most in [1.0, 17.0, 999_999.0, 1e6] {
            assert_eq!(highest_fitting(|s| s <= most), Some(most));
        }
        assert_eq!(highest_fitting(|s| s < 1.0), None);
    }
}
