//! A VM as a whole: its size, whether it is frozen, and the speed that its credits allow.

use dormouse_units::{Bytes, Credits, Mode, Ppm, Span};

use crate::{CreditAllowance, CreditSpec};

/// Size of a VM, and its credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Number of virtual processors.
    pub vcpus: u32,
    /// Memory of the VM.
    pub memory: Bytes,
    /// How the VM earns credits; `None`: it isn't burstable.
    pub credits: Option<CreditSpec>,
}

/// State of a VM's machine: whether it is frozen, and its credits.
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

    /// Returns the VM's size and how it earns credits.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// Returns the credit balance; `None`: the VM isn't burstable.
    #[must_use]
    pub fn credits(&self) -> Option<Credits> {
        self.allowance.as_ref().map(CreditAllowance::balance_left)
    }

    /// Returns whether the VM is frozen by a hibernation.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Returns whether credits have run out, so that the VM runs at the baseline until a whole credit is earned.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.allowance.as_ref().is_some_and(CreditAllowance::is_throttled)
    }

    /// Returns whether the VM is burstable.
    pub(crate) const fn is_burstable(&self) -> bool {
        self.allowance.is_some()
    }

    /// Records that the VM is frozen by a hibernation, or thawed.
    pub(crate) fn set_frozen(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Returns the largest share of its vCPU that a process in the CPU mode `mode` may have while the VM runs.
    pub(crate) fn speed_ceiling(&self, mode: Mode) -> Ppm {
        match &self.allowance {
            Some(allowance) if mode == Mode::Baseline => allowance.spec().baseline,
            Some(allowance) => allowance.speed_ceiling(),
            None => Ppm::ONE,
        }
    }

    /// Passes `span` at a constant use of `used` vCPUs (their sum, in ppm of one vCPU); returns whether the credits
    /// changed the VM's speed.
    pub(crate) fn pass_time(&mut self, span: Span, used: u64) -> bool {
        let running = self.allowance.as_mut().filter(|_| !self.frozen);
        running.is_some_and(|allowance| allowance.pass_time(span, used))
    }

    /// Spends credits for a use of `used` vCPUs (in ppm of one vCPU) during `span` that became known only after that time was
    /// passed; returns whether the credits changed the VM's speed.
    pub(crate) fn spend_late(&mut self, span: Span, used: u64) -> bool {
        let running = self.allowance.as_mut().filter(|_| !self.frozen);
        running.is_some_and(|allowance| allowance.spend_late(span, used))
    }

    /// Returns the time from now until credits change the VM's speed at a constant use of `used` (in ppm of one vCPU); `None`:
    /// never.
    pub(crate) fn credits_turn_after(&self, used: u64) -> Option<Span> {
        self.allowance.as_ref().filter(|_| !self.frozen)?.turn_after(used)
    }
}
