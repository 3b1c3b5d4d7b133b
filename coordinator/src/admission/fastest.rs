//! How fast the hosts can go.

use dormouse_units::Speedup;

use super::{Admission, Request};

/// The least speed-up there is.
const LEAST: f64 = 0.001;

impl Request<'_> {
    /// What fits at the least speed-up there is; `None`: the hosts can't hold it at any.
    #[must_use]
    pub fn slowest(&self) -> Option<Admission> {
        self.at(LEAST)
    }

    /// The highest whole speed-up at which the hosts hold it, if they do at 1: what fits at one does
    /// at every lower one.
    #[must_use]
    pub fn fastest(&self) -> Option<f64> {
        highest(|speedup| self.at(speedup).is_some())
    }

    fn at(&self, speedup: f64) -> Option<Admission> {
        Self { speedup: Speedup::from_f64(speedup)?, ..*self }.admit().ok()
    }
}

fn highest(fits: impl Fn(f64) -> bool) -> Option<f64> {
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
            assert_eq!(highest(|s| s <= most), Some(most));
        }
        assert_eq!(highest(|s| s < 1.0), None);
    }
}
