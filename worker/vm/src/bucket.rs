//! CPU credits: a token bucket fed at a constant rate and drained by use.

use dormouse_units::{Credits, Ppm, Span};

/// How a burstable type earns and spends credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditSpec {
    /// Share of full speed that each vCPU has at the baseline.
    pub baseline: Ppm,
    /// Credits earned per hour by the whole VM.
    pub earned_per_hour: Credits,
    /// Credits that a VM has at its launch.
    pub initial: Credits,
    /// Most credits that a VM can hold.
    pub cap: Credits,
}

/// Fine units of credit in one vCPU-microsecond, chosen so that rates per hour and uses in parts per million are whole numbers per
/// microsecond and nothing is rounded.
const FINE: u128 = 3_600_000_000 * 1_000_000;

/// Credit bucket of one VM.
#[derive(Clone, Debug)]
pub struct CreditBucket {
    spec: CreditSpec,
    fine: u128,
}

impl CreditBucket {
    /// Makes the bucket of a VM that was just launched.
    #[must_use]
    pub fn new(spec: CreditSpec) -> Self {
        Self { fine: u128::from(spec.initial.min(spec.cap).as_vcpu_micros()) * FINE, spec }
    }

    /// Returns how the VM earns and spends credits.
    #[must_use]
    pub const fn spec(&self) -> &CreditSpec {
        &self.spec
    }

    /// Returns the credits in the bucket, rounded down.
    #[must_use]
    pub fn balance_left(&self) -> Credits {
        Credits::from_vcpu_micros(u64::try_from(self.fine / FINE).unwrap_or(u64::MAX))
    }

    /// Returns whether the bucket is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fine == 0
    }

    /// Passes `span` at a constant use of `used` vCPUs (their sum, in ppm of one vCPU). The bucket never falls below
    /// zero or rises above the cap.
    pub fn pass_time(&mut self, span: Span, used: u64) {
        let us = u128::from(span.as_micros());
        self.settle_balance(us * self.earned_per_us(), us * Self::spent_per_us(used));
    }

    /// Spends the credits for a use of `used` vCPUs (in ppm of one vCPU) during `span`, whose earned credits are in the
    /// bucket already.
    pub fn spend_late(&mut self, span: Span, used: u64) {
        self.settle_balance(0, u128::from(span.as_micros()) * Self::spent_per_us(used));
    }

    fn settle_balance(&mut self, earned: u128, spent: u128) {
        let cap = u128::from(self.spec.cap.as_vcpu_micros()) * FINE;
        self.fine = (self.fine + earned).saturating_sub(spent).min(cap);
    }

    /// Returns the time from now until the bucket is empty at a constant use of `used` (in ppm of one vCPU); `None`: never.
    #[must_use]
    pub fn empty_after(&self, used: u64) -> Option<Span> {
        let net =
            Self::spent_per_us(used).checked_sub(self.earned_per_us()).filter(|&net| net > 0)?;
        span_of(self.fine.div_ceil(net))
    }

    /// Returns the time from now until the bucket holds `level` at a constant use of `used` (in ppm of one vCPU); `None`: never.
    #[must_use]
    pub fn reaches_after(&self, level: Credits, used: u64) -> Option<Span> {
        let level = u128::from(level.min(self.spec.cap).as_vcpu_micros()) * FINE;
        let missing = level.saturating_sub(self.fine);
        if missing == 0 {
            return Some(Span::ZERO);
        }
        let net =
            self.earned_per_us().checked_sub(Self::spent_per_us(used)).filter(|&net| net > 0)?;
        span_of(missing.div_ceil(net))
    }

    /// Returns the credits earned per microsecond, in fine units (`FINE` of them are one vCPU-microsecond).
    fn earned_per_us(&self) -> u128 {
        u128::from(self.spec.earned_per_hour.as_vcpu_micros()) * 1_000_000
    }

    /// Returns the credits spent per microsecond at a use of `used` (in ppm of one vCPU), in fine units (`FINE` are a
    /// vCPU-microsecond).
    fn spent_per_us(used: u64) -> u128 {
        u128::from(used) * 3_600_000_000
    }
}

fn span_of(us: u128) -> Option<Span> {
    u64::try_from(us).ok().map(Span::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn t3_large(initial: u64) -> CreditBucket {
        CreditBucket::new(CreditSpec {
            baseline: Ppm::new(200_000),
            earned_per_hour: Credits::whole_credits(36),
            initial: Credits::whole_credits(initial),
            cap: Credits::whole_credits(864),
        })
    }

    #[test]
    fn the_rates_are_those_of_the_provider() {
        let mut bucket = t3_large(0);
        bucket.pass_time(Span::from_secs(600), 0);
        assert_eq!(bucket.balance_left(), Credits::whole_credits(6));
        // One vCPU at 100 % spends 1 credit a minute and .6 is earned: 6 / .4 = 15 minutes.
        assert_eq!(bucket.empty_after(1_000_000), Some(Span::from_secs(900)));
        bucket.pass_time(Span::from_secs(900), 1_000_000);
        assert!(bucket.is_empty());
        assert_eq!(bucket.empty_after(600_000), None);
        assert_eq!(bucket.reaches_after(Credits::ONE, 0), Some(Span::from_secs(100)));
        assert_eq!(bucket.reaches_after(Credits::ONE, 700_000), None);
    }

    proptest! {
        /// Passing time in pieces or at once gives the same credits: nothing is lost to rounding.
        #[test]
        fn cutting_time_changes_nothing(cuts in prop::collection::vec(1_u64..5_000_000, 1..40), used in 0_u64..600_000) {
            let (mut whole, mut parts) = (t3_large(10), t3_large(10));
            whole.pass_time(Span::from_micros(cuts.iter().sum()), used);
            for &us in &cuts {
                parts.pass_time(Span::from_micros(us), used);
            }
            prop_assert_eq!(whole.fine, parts.fine);
        }

        #[test]
        fn it_is_empty_exactly_when_foretold(initial in 0_u64..50, used in 600_001_u64..2_000_000) {
            let mut bucket = t3_large(initial);
            let after = bucket.empty_after(used).expect("more is used than earned");
            if let Some(before) = after.as_micros().checked_sub(1) {
                let mut early = bucket.clone();
                early.pass_time(Span::from_micros(before), used);
                prop_assert!(!early.is_empty());
            }
            bucket.pass_time(after, used);
            prop_assert!(bucket.is_empty());
        }
    }
}
