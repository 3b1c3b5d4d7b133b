//! One VM as its user sees it.

use std::collections::VecDeque;

use dormouse_cloud::{Burstable, Market};
use dormouse_model::StartReason;
use dormouse_units::{Credits, Ppm, Span, TaskId, Time};

use crate::problem::{Kind, KindId};
use dormouse_units::Mode;

/// Where a VM is in its life. A terminated one is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Booting,
    /// Busy or idle.
    Ready,
    Hibernated {
        since: Time,
    },
    /// It will be killed.
    Leaving,
}

/// A task that waits for a vCPU of the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) task: TaskId,
    pub(crate) mode: Mode,
    pub(crate) reason: StartReason,
}

/// A task on a vCPU of the VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) task: TaskId,
    pub(crate) mode: Mode,
    /// When it should end.
    pub(crate) ends: Time,
    /// Since when no checkpoint has kept its work.
    pub(crate) since: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) kind: KindId,
    pub(crate) market: Market,
    pub(crate) phase: Phase,
    /// When it will be killed, if that was said; a hibernation or resume between changes nothing.
    pub(crate) doomed: Option<Time>,
    /// When it will have booted, while it boots.
    pub(crate) ready_at: Time,
    /// When its first allocation cycle began.
    pub(crate) cycle_from: Time,
    /// The wake-up asked for at the end of a cycle.
    pub(crate) cycle_wake: Option<Time>,
    pub(crate) queue: VecDeque<Queued>,
    pub(crate) running: Vec<Running>,
    /// Tasks on its vCPUs that take a checkpoint to go on elsewhere.
    pub(crate) leaving: Vec<TaskId>,
    /// Credit balance as last reported or reckoned, and the time from which it counts.
    pub(crate) credits: (Credits, Time),
}

impl Machine {
    pub(crate) fn new(kind: KindId, market: Market, ready_at: Time, offer: &Kind) -> Self {
        let credits = offer.burstable.map_or(Credits::ZERO, |b| b.initial);
        Self {
            kind,
            market,
            phase: Phase::Booting,
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

    /// It has tasks that run, are frozen or wait.
    pub(crate) fn has_work(&self) -> bool {
        !(self.running.is_empty() && self.queue.is_empty())
    }

    /// It could work but has nothing to do (IR of the paper).
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Ready && !self.has_work()
    }

    /// It can take tasks, now or once booted.
    pub(crate) fn takes_work(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Booting)
    }

    /// All its tasks, those on vCPUs first.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        let running = self.running.iter().map(|r| r.task);
        running.chain(self.queue.iter().map(|q| q.task))
    }

    /// Takes a task off a vCPU, and what it spent off the credits: they are heard of later. False
    /// if it isn't on one.
    pub(crate) fn clear(&mut self, now: Time, task: TaskId, kind: &Kind) -> bool {
        let Some(place) = self.running.iter().position(|r| r.task == task) else { return false };
        self.credits = (self.balance(now, kind), now);
        self.running.remove(place);
        true
    }

    /// The credits it should have at `now`: earned and, by what runs, spent since last heard of.
    pub(crate) fn balance(&self, now: Time, kind: &Kind) -> Credits {
        let Some(burstable) = kind.burstable else { return Credits::ZERO };
        let (heard, at) = self.credits;
        let since = now.since(at);
        let speeds = self.running.iter().map(|r| speed(r.mode, kind));
        let spent: u64 = speeds.map(|speed| since.part(speed).as_micros()).sum();
        let full = heard + earned(&burstable, since);
        full.min(burstable.cap).saturating_sub(Credits::from_vcpu_micros(spent))
    }
}

/// The speed of a vCPU for a task in this mode.
pub(crate) fn speed(mode: Mode, kind: &Kind) -> Ppm {
    match mode {
        Mode::Burst => Ppm::ONE,
        Mode::Baseline => kind.baseline(),
    }
}

/// Credits that bursting for this long takes: one per minute begun (Algorithm 4, line 6).
pub(crate) fn needed(time: Span) -> Credits {
    Credits::whole(time.as_micros().div_ceil(Credits::ONE.as_vcpu_micros()))
}

fn earned(burstable: &Burstable, time: Span) -> Credits {
    const HOUR: u128 = 3_600_000_000;
    let rate = u128::from(burstable.earned_per_hour.as_vcpu_micros());
    let earned = rate * u128::from(time.as_micros()) / HOUR;
    Credits::from_vcpu_micros(u64::try_from(earned).unwrap_or(u64::MAX))
}
