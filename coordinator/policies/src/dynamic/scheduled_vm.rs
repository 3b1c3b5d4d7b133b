//! One VM as the scheduler sees it.

use std::collections::VecDeque;

use dormouse_cloud::{BurstableTerms, Market};
use dormouse_model::StartReason;
use dormouse_units::{Credits, Ppm, Span, TaskId, Time};

use crate::problem::{KindId, KnownType, Offer};
use dormouse_units::Mode;

/// Phase of a VM, from its launch to its end. A terminated VM has none, as the view forgets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VmPhase {
    Booting,
    /// The VM can be used, whether busy or idle.
    Ready,
    Hibernated {
        since: Time,
    },
    /// The VM will be killed: the provider has given notice.
    Leaving,
}

/// A task that waits for a vCPU of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedTask {
    pub(crate) task: TaskId,
    pub(crate) mode: Mode,
    pub(crate) reason: StartReason,
}

/// A task on a vCPU of the VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningTask {
    pub(crate) task: TaskId,
    pub(crate) mode: Mode,
    /// Time at which the task is expected to end.
    pub(crate) ends: Time,
    /// Time of the last checkpoint of this attempt or, before the first, of its start.
    pub(crate) since: Time,
}

/// A VM as the scheduler knows it: its phase, its tasks and its credits.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledVm {
    pub(crate) kind: KindId,
    pub(crate) market: Market,
    pub(crate) phase: VmPhase,
    /// Announced time at which the VM will be killed; `None`: none is announced. A hibernation or resume before that time changes
    /// nothing.
    pub(crate) doomed: Option<Time>,
    /// Time at which a booting VM is expected to be ready; afterwards the time at which it was.
    pub(crate) ready_at: Time,
    /// When the VM's first allocation cycle began.
    pub(crate) cycle_from: Time,
    /// Time of the pending wake-up at the end of an allocation cycle; `None`: none is pending.
    pub(crate) cycle_wake: Option<Time>,
    pub(crate) queue: VecDeque<QueuedTask>,
    pub(crate) running: Vec<RunningTask>,
    /// Tasks on the VM's vCPUs that take a last checkpoint before they move elsewhere.
    pub(crate) leaving: Vec<TaskId>,
    /// Credit balance as last reported or computed, and the time at which it applied.
    pub(crate) credits: (Credits, Time),
}

impl ScheduledVm {
    pub(crate) fn new(kind: KindId, market: Market, ready_at: Time, offer: &KnownType) -> Self {
        let credits = offer.burstable.map_or(Credits::ZERO, |b| b.initial);
        Self {
            kind,
            market,
            phase: VmPhase::Booting,
            doomed: None,
            ready_at,
            cycle_from: ready_at,
            cycle_wake: None,
            queue: VecDeque::new(),
            running: Vec::with_capacity(offer.vcpus),
            leaving: Vec::new(),
            credits: (credits, ready_at),
        }
    }

    /// The VM's type, as it was bought.
    pub(crate) const fn offer_of_vm(&self) -> Offer {
        (self.kind, self.market)
    }

    /// True if the VM has tasks that run, are frozen or wait.
    pub(crate) fn has_work(&self) -> bool {
        !(self.running.is_empty() && self.queue.is_empty())
    }

    /// True if the VM could work but has nothing to do (IR of the paper).
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == VmPhase::Ready && !self.has_work()
    }

    /// True if the VM can take tasks, now or once booted.
    pub(crate) fn takes_work(&self) -> bool {
        matches!(self.phase, VmPhase::Ready | VmPhase::Booting)
    }

    /// All tasks of the VM, those on vCPUs first.
    pub(crate) fn all_tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        let running = self.running.iter().map(|r| r.task);
        running.chain(self.queue.iter().map(|q| q.task))
    }

    /// Removes a task from its vCPU and deducts the credits that it used, as the new balance is
    /// reported later. False if the task is on no vCPU.
    pub(crate) fn clear_vcpu(&mut self, now: Time, task: TaskId, kind: &KnownType) -> bool {
        let Some(place) = self.running.iter().position(|r| r.task == task) else { return false };
        self.credits = (self.credit_balance(now, kind), now);
        self.running.remove(place);
        true
    }

    /// Expected credits of the VM at `now`: the last reported balance plus what it earned and minus
    /// what its tasks spent since.
    pub(crate) fn credit_balance(&self, now: Time, kind: &KnownType) -> Credits {
        let Some(burstable) = kind.burstable else { return Credits::ZERO };
        let (heard, at) = self.credits;
        let since = now.since(at);
        let speeds = self.running.iter().map(|r| vcpu_speed(r.mode, kind));
        let spent: u64 = speeds.map(|speed| since.part(speed).as_micros()).sum();
        let full = heard + credits_earned(&burstable, since);
        full.min(burstable.cap).saturating_sub(Credits::from_vcpu_micros(spent))
    }
}

/// The speed of a vCPU for a task in this mode.
pub(crate) fn vcpu_speed(mode: Mode, kind: &KnownType) -> Ppm {
    match mode {
        Mode::Burst => Ppm::ONE,
        Mode::Baseline => kind.baseline(),
    }
}

/// Credits that bursting for this long takes: one per minute begun (Algorithm 4, line 6).
pub(crate) fn credits_needed(time: Span) -> Credits {
    Credits::whole_credits(time.as_micros().div_ceil(Credits::ONE.as_vcpu_micros()))
}

fn credits_earned(burstable: &BurstableTerms, time: Span) -> Credits {
    const HOUR: u128 = 3_600_000_000;
    let rate = u128::from(burstable.earned_per_hour.as_vcpu_micros());
    let earned = rate * u128::from(time.as_micros()) / HOUR;
    Credits::from_vcpu_micros(u64::try_from(earned).unwrap_or(u64::MAX))
}
