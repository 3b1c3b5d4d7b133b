//! Checks of the credits of a burstable machine with parallel jobs.

use dormouse_cloud::BurstableTerms;
use dormouse_model::MACHINE;
use dormouse_units::{Credits, Ppm, Span, Tier, Time, TypeName, VmId};

use super::{JobInSystem, JobsChecker};
use crate::check::balance::{BalanceBounds, UseBounds};

/// Credits of the machine of parallel jobs, and the CPU use of its jobs.
#[derive(Debug)]
pub(super) struct MachineCredits {
    burstable: Option<BurstableTerms>,
    /// Whether jobs are checkpointed: a checkpoint fully uses all processors of its job.
    checkpoints: bool,
    lateness: Span,
    machine: Option<(VmId, BalanceBounds)>,
    /// True if the machine has reported zero credits, and no whole credit since then.
    is_throttled: bool,
    /// Least and greatest CPU use by the jobs on the machine now.
    now: UseBounds,
}

impl MachineCredits {
    pub(super) fn new(
        burstable: Option<BurstableTerms>,
        checkpoints: bool,
        lateness: Span,
    ) -> Self {
        Self {
            burstable,
            checkpoints,
            lateness,
            machine: None,
            is_throttled: false,
            now: UseBounds::default(),
        }
    }

    /// Gives the machine its initial credits when its VM is launched; other VMs are ignored.
    pub(super) fn launched(&mut self, now: Time, vm: VmId, kind: &TypeName) {
        if let (Some(burstable), true) = (self.burstable, *kind == TypeName::from(MACHINE)) {
            self.machine = Some((vm, BalanceBounds::new(burstable, now)));
            self.is_throttled = burstable.initial.min(burstable.cap) == Credits::ZERO;
        }
    }

    /// Adds the machine's CPU use up to `now`.
    pub(super) fn pass(&mut self, now: Time) {
        if let Some((_, balance)) = &mut self.machine {
            balance.pass(now, self.now);
        }
    }

    /// Checks a credit balance that the machine reported, and returns what is wrong with it, if anything.
    pub(super) fn said(
        &mut self,
        now: Time,
        of: VmId,
        (credits, as_of): (Credits, Option<Time>),
    ) -> Option<String> {
        let Some(burstable) = self.burstable else {
            return Some("it has credits, and the jobs' machine is not burstable".to_owned());
        };
        let (_, balance) = self.machine.as_mut().filter(|(vm, _)| *vm == of)?;
        if credits == Credits::ZERO {
            self.is_throttled = true;
        } else if credits >= Credits::ONE.min(burstable.cap) {
            self.is_throttled = false;
        }
        balance.error_in(now, (credits, as_of), (self.lateness, Span::ZERO))
    }
}

impl JobsChecker {
    /// Recomputes the least and greatest CPU use of the jobs on the machine.
    pub(super) fn look_at_use(&mut self) {
        let Some(burstable) = self.credits.burstable else { return };
        let (whole, mut now) = (u64::from(Ppm::ONE.get()), UseBounds::default());
        // Without credits the processors run at their baseline, and so does what is used of them.
        let speed = if self.credits.is_throttled { burstable.baseline } else { Ppm::ONE };
        for seats in &self.processors {
            let used = seats.iter().flatten().map(|_| whole);
            now.most += speed.scale_number(used.sum::<u64>().min(whole));
        }
        // At the baseline only computing is slower: a larger part of the time goes to it.
        if !self.credits.checkpoints && !self.credits.is_throttled {
            now.most = now.most.min(self.usage_of_all(speed, |_| true));
        }
        now.least = self.usage_of_all(speed, |inside| self.is_unhindered(inside));
        self.credits.now = now;
    }

    /// CPU use of the jobs that `which` selects, at this speed, in millionths of a vCPU.
    fn usage_of_all(&self, speed: Ppm, which: impl Fn(&JobInSystem) -> bool) -> u64 {
        let seated = self.inside.values().filter(|inside| which(inside));
        let usage = seated.filter_map(|inside| {
            let (_, on) = inside.seats.as_ref()?;
            let each = (0..on.len()).map(|n| u64::from(inside.job.usage.of_process(n).get()));
            Some(each.sum::<u64>())
        });
        speed.scale_number(usage.sum())
    }

    /// Whether nothing can keep a job from its full CPU usage: the job is in the foreground, no job
    /// is below it, and it was never moved (while a job moves, it uses no CPU time).
    fn is_unhindered(&self, inside: &JobInSystem) -> bool {
        let Some((Tier::Foreground, on)) = &inside.seats else { return false };
        let has_below = |p: &u32| {
            let seats = self.processors.get(*p as usize);
            seats.is_some_and(|seats| seats[Tier::Background as usize].is_some())
        };
        !inside.was_moved && !on.iter().any(has_below)
    }
}
