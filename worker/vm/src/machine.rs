//! A VM as a whole: what it is, whether it is frozen, and what its credits allow.

use dormouse_units::{Bytes, Credits, Mode, Ppm, Span};

use crate::{Bucket, CreditSpec};

/// What a VM is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory.
    pub memory: Bytes,
    /// Set for burstable VMs.
    pub credits: Option<CreditSpec>,
}

/// Its state: frozen or not, credits.
#[derive(Clone, Debug)]
pub struct Machine {
    spec: MachineSpec,
    bucket: Option<Bucket>,
    frozen: bool,
    /// Out of credits: everything runs at the baseline until a whole credit is earned.
    throttled: bool,
}

impl Machine {
    pub(crate) fn new(spec: MachineSpec) -> Self {
        let bucket = spec.credits.map(Bucket::new);
        let throttled = bucket.as_ref().is_some_and(Bucket::is_empty);
        Self { spec, bucket, frozen: false, throttled }
    }

    /// Its vCPUs, its memory and, if it is burstable, how it earns credits.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// The credit balance, if burstable.
    #[must_use]
    pub fn credits(&self) -> Option<Credits> {
        self.bucket.as_ref().map(Bucket::balance)
    }

    /// Frozen by a hibernation.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Out of credits: at the baseline until a whole one is earned.
    #[must_use]
    pub const fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Whether it has credits at all.
    pub(crate) const fn is_burstable(&self) -> bool {
        self.bucket.is_some()
    }

    /// Hibernates, or runs again.
    pub(crate) fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// What share of its vCPU a process in this mode may have at most while the VM runs.
    pub(crate) fn ceiling(&self, mode: Mode) -> Ppm {
        match &self.bucket {
            Some(bucket) if self.throttled || mode == Mode::Baseline => bucket.spec().baseline,
            _ => Ppm::ONE,
        }
    }

    /// `span` passes at a constant use of `used` vCPUs (their sum, in ppm of one vCPU); whether
    /// the credits changed how fast it runs.
    pub(crate) fn pass(&mut self, span: Span, used: u64) -> bool {
        let Some(bucket) = self.bucket.as_mut().filter(|_| !self.frozen) else { return false };
        bucket.pass(span, used);
        let throttled = if bucket.is_empty() {
            true
        } else if bucket.balance() >= Credits::ONE.min(bucket.spec().cap) {
            false
        } else {
            self.throttled
        };
        std::mem::replace(&mut self.throttled, throttled) != throttled
    }

    /// From now until the credits change how fast it runs, at this use: they run out, or a whole
    /// one is earned again. `None`: never.
    pub(crate) fn credits_turn_after(&self, used: u64) -> Option<Span> {
        let bucket = self.bucket.as_ref().filter(|_| !self.frozen)?;
        if self.throttled {
            bucket.reaches_after(Credits::ONE, used).filter(|_| bucket.spec().cap > Credits::ZERO)
        } else {
            bucket.empty_after(used)
        }
    }
}
