//! CPU credits of burstable VMs.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// CPU credits as an integer number of vCPU-microseconds: one credit is one
/// vCPU at 100 % for one minute (Burst-HADS, section III-E; AWS).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Credits(u64);

impl Credits {
    /// An amount of zero credits.
    pub const ZERO: Self = Self(0);
    /// One credit: 60 million vCPU-microseconds.
    pub const ONE: Self = Self(60_000_000);

    /// `n` whole credits.
    #[must_use]
    pub const fn whole_credits(n: u64) -> Self {
        Self(n * Self::ONE.0)
    }

    /// Credits worth `us` vCPU-microseconds.
    #[must_use]
    pub const fn from_vcpu_micros(us: u64) -> Self {
        Self(us)
    }

    /// The credits in vCPU-microseconds.
    #[must_use]
    pub const fn as_vcpu_micros(self) -> u64 {
        self.0
    }

    /// The nearest amount to `credits`; `None` if `credits` is negative, not finite or above a million.
    #[must_use]
    pub fn from_f64(credits: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked in the same expression"
        )]
        (0.0..=1e6).contains(&credits).then_some(Self((credits * 60e6).round() as u64))
    }

    /// The number of credits, for people and plots only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 60e6
    }

    /// Subtracts `other` from these credits; zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Credits {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Credits {
    type Output = Self;
    /// Subtracts credits; the result is zero if it would be negative.
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} credits", self.as_f64())
    }
}
