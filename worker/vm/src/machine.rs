//! A VM as a whole: what it is, whether it is frozen, and what its credits allow.

use dormouse_units::{Bytes, Credits, Mode, Ppm, Span};

use crate::{CreditAllowance, CreditSpec};

/// What a VM is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Number of virtual processors.
    pub vcpus: u32,
    /// Memory of the VM.
    pub memory: Bytes,
    /// Set for burstable VMs.
    pub credits: Option<CreditSpec>,
}

/// State of a VM: whether it is frozen, and its credits.
#[derive(Clone, Debug)]
pub struct MachineState {
    spec: MachineSpec,
    allowance: Option<CreditAllowance>,
    frozen: bool,
}

impl MachineState {
    pub(crate) fn new(spec: MachineSpec) -> Self {
        let allowance = spec.credits.map(CreditAllowance::new);
        Self { spec, allowance, frozen: false }
    }

    /// The VM's vCPUs, its memory and, if it is burstable, how it earns credits.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// The credit balance, if burstable.
    #[must_use]
    pub fn credits(&self) -> Option<Credits> {
        self.allowance.as_ref().map(CreditAllowance::balance_left)
    }

    /// Frozen by a hibernation.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Out of credits: at the baseline until a whole one is earned.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.allowance.as_ref().is_some_and(CreditAllowance::is_throttled)
    }

    /// Whether it has credits at all.
    pub(crate) const fn is_burstable(&self) -> bool {
        self.allowance.is_some()
    }

    /// Hibernates, or runs again.
    pub(crate) fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// What share of its vCPU a process in this mode may have at most while the VM runs.
    pub(crate) fn speed_ceiling(&self, mode: Mode) -> Ppm {
        match &self.allowance {
            Some(allowance) if mode == Mode::Baseline => allowance.spec().baseline,
            Some(allowance) => allowance.speed_ceiling(),
            None => Ppm::ONE,
        }
    }

    /// `span` passes at a constant use of `used` vCPUs (their sum, in ppm of one vCPU); whether
    /// the credits changed how fast it runs.
    pub(crate) fn pass_time(&mut self, span: Span, used: u64) -> bool {
        let running = self.allowance.as_mut().filter(|_| !self.frozen);
        running.is_some_and(|allowance| allowance.pass_time(span, used))
    }

    /// As [`Self::pass_time`] of a use that is heard of after its time has passed.
    pub(crate) fn spend_late(&mut self, span: Span, used: u64) -> bool {
        let running = self.allowance.as_mut().filter(|_| !self.frozen);
        running.is_some_and(|allowance| allowance.spend_late(span, used))
    }

    /// From now until the credits change how fast it runs, at this use: they run out, or a whole
    /// one is earned again. `None`: never.
    pub(crate) fn credits_turn_after(&self, used: u64) -> Option<Span> {
        self.allowance.as_ref().filter(|_| !self.frozen)?.turn_after(used)
    }
}
