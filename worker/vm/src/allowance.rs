//! Speed that CPU credits allow a burstable VM: full speed while it has credits, the baseline after that until a whole
//! credit is earned.

use dormouse_units::{Credits, Ppm, Span};

use crate::{CreditBucket, CreditSpec};

/// Credits of a burstable VM, and the speed that they allow now.
#[derive(Clone, Debug)]
pub struct CreditAllowance {
    bucket: CreditBucket,
    /// True if the credits have run out: every process runs at the baseline until a whole credit is earned.
    throttled: bool,
}

impl CreditAllowance {
    /// Makes the allowance of a VM that was just launched.
    #[must_use]
    pub fn new(spec: CreditSpec) -> Self {
        let bucket = CreditBucket::new(spec);
        Self { throttled: bucket.is_empty(), bucket }
    }

    /// Returns how the VM earns and spends credits.
    #[must_use]
    pub const fn spec(&self) -> &CreditSpec {
        self.bucket.spec()
    }

    /// Returns the credits left, rounded down.
    #[must_use]
    pub fn balance_left(&self) -> Credits {
        self.bucket.balance_left()
    }

    /// Returns whether the credits have run out, so that everything runs at the baseline until a whole credit is
    /// earned.
    #[must_use]
    pub const fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Returns the largest share of its vCPU that a process may have, as the credits allow.
    #[must_use]
    pub const fn speed_ceiling(&self) -> Ppm {
        if self.throttled { self.spec().baseline } else { Ppm::ONE }
    }

    /// Passes `span` at a constant use of `used` vCPUs (their sum, in ppm of one vCPU); returns whether the allowed
    /// speed changed.
    pub fn pass_time(&mut self, span: Span, used: u64) -> bool {
        self.bucket.pass_time(span, used);
        self.update_throttling()
    }

    /// Spends credits for a use of `used` vCPUs (in ppm of one vCPU) during `span` that became known only after that time was
    /// passed; returns whether the allowed speed changed.
    pub fn spend_late(&mut self, span: Span, used: u64) -> bool {
        self.bucket.spend_late(span, used);
        self.update_throttling()
    }

    /// Updates whether the VM is throttled; returns whether that changed.
    fn update_throttling(&mut self) -> bool {
        let bucket = &self.bucket;
        let throttled = if bucket.is_empty() {
            true
        } else if bucket.balance_left() >= Credits::ONE.min(bucket.spec().cap) {
            false
        } else {
            self.throttled
        };
        std::mem::replace(&mut self.throttled, throttled) != throttled
    }

    /// Returns the time from now until the allowed speed changes at a constant use of `used` (in ppm of one vCPU), because credits
    /// run out or a whole credit is earned; `None`: never.
    #[must_use]
    pub fn turn_after(&self, used: u64) -> Option<Span> {
        if self.throttled {
            let can_hold_any = self.spec().cap > Credits::ZERO;
            self.bucket.reaches_after(Credits::ONE, used).filter(|_| can_hold_any)
        } else {
            self.bucket.empty_after(used)
        }
    }
}
