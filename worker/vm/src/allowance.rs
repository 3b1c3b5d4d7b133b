//! What its credits allow a burstable VM: full speed while there are some, the baseline after that
//! until a whole one is earned.

use dormouse_units::{Credits, Ppm, Span};

use crate::{CreditBucket, CreditSpec};

/// The credits of a VM, and what they allow it now.
#[derive(Clone, Debug)]
pub struct CreditAllowance {
    bucket: CreditBucket,
    /// Out of credits: everything runs at the baseline until a whole credit is earned.
    throttled: bool,
}

impl CreditAllowance {
    /// Allowance of a VM just launched.
    #[must_use]
    pub fn new(spec: CreditSpec) -> Self {
        let bucket = CreditBucket::new(spec);
        Self { throttled: bucket.is_empty(), bucket }
    }

    /// How it earns and spends.
    #[must_use]
    pub const fn spec(&self) -> &CreditSpec {
        self.bucket.spec()
    }

    /// What is left, rounded down.
    #[must_use]
    pub fn balance_left(&self) -> Credits {
        self.bucket.balance_left()
    }

    /// Out of credits: at the baseline until a whole one is earned.
    #[must_use]
    pub const fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// What share of its vCPU a process may have at most.
    #[must_use]
    pub const fn speed_ceiling(&self) -> Ppm {
        if self.throttled { self.spec().baseline } else { Ppm::ONE }
    }

    /// `span` passes at a constant use of `used` vCPUs (their sum, in ppm of one vCPU); whether
    /// that changed what is allowed.
    pub fn pass_time(&mut self, span: Span, used: u64) -> bool {
        self.bucket.pass_time(span, used);
        self.update_throttling()
    }

    /// As [`Self::pass_time`] of a use that is heard of after its time has passed.
    pub fn spend_late(&mut self, span: Span, used: u64) -> bool {
        self.bucket.spend_late(span, used);
        self.update_throttling()
    }

    /// Sees what is allowed now; whether that changed.
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

    /// From now until what is allowed changes, at this use: the credits run out, or a whole one is
    /// earned again. `None`: never.
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
