//! The unit of the times on a page.

use crate::number::{fixed, grouped};

/// Longest time on a page, in seconds, that is still written in seconds.
const LONG_S: f64 = 10_000.0;

/// Unit of time, the same for all times of a page, so that any two of them compare at sight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds, for most pages.
    #[default]
    Second,
    /// Hours, for pages whose longest time has five digits in seconds.
    Hour,
}

impl TimeUnit {
    /// The unit of a page whose longest time is this many seconds.
    #[must_use]
    pub fn for_longest(seconds: f64) -> Self {
        if seconds >= LONG_S { Self::Hour } else { Self::Second }
    }

    /// Symbol of the unit: `s` or `h`.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Hour => "h",
        }
    }

    /// Length of the unit in seconds.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Hour => 3_600.0,
        }
    }

    /// Number of decimals that is as exact as `digits` decimals of a second.
    #[must_use]
    pub const fn digits(self, digits: usize) -> usize {
        match self {
            Self::Second => digits,
            // A hundredth of an hour is about half a minute: exact enough where times are hours.
            Self::Hour => digits + 2,
        }
    }

    /// A duration in seconds as a number of this unit, as exact as `digits` decimals of a second.
    #[must_use]
    pub fn number(self, seconds: f64, digits: usize) -> String {
        fixed(seconds / self.seconds(), self.digits(digits))
    }

    /// A length of time in seconds, with the unit, for people: `977.9 s`, `1.250 h`, `12,000 s`.
    #[must_use]
    pub fn words(self, seconds: f64, digits: usize) -> String {
        format!("{} {}", grouped(&self.number(seconds, digits)), self.symbol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_told_in_hours() {
        assert_eq!(TimeUnit::for_longest(9_999.9).words(977.86, 1), "977.9 s");
        assert_eq!(TimeUnit::for_longest(10_000.0).words(4_500.0, 1), "1.250 h");
        assert_eq!(TimeUnit::Hour.words(36.0, 0), "0.01 h");
        assert_eq!(TimeUnit::Second.number(-0.2, 0), "0");
    }
}
