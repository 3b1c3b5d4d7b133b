//! The credits of the machine of parallel jobs, where it is burstable: what can be left of them by what
//! sits on its processors.

use dormouse_cloud::Burstable;
use dormouse_model::MACHINE;
use dormouse_units::{Credits, Ppm, Span, Tier, Time, TypeName, VmId};

use super::{Inside, JobsChecker};
use crate::check::balance::{Balance, Use};

/// A machine for parallel jobs, by its credits.
#[derive(Debug)]
pub(super) struct MachineCredits {
    burstable: Option<Burstable>,
    /// A checkpoint uses all of the processors that it is taken on.
    checkpoints: bool,
    lateness: Span,
    machine: Option<(VmId, Balance)>,
    /// The machine said that it has none, and not yet that it has a whole one again.
    is_throttled: bool,
    /// What those that sit on it use now.
    now: Use,
}

impl MachineCredits {
    pub(super) fn new(burstable: Option<Burstable>, checkpoints: bool, lateness: Span) -> Self {
        Self {
            burstable,
            checkpoints,
            lateness,
            machine: None,
            is_throttled: false,
            now: Use::default(),
        }
    }

    /// A VM is launched: the machine has the credits of a new one.
    pub(super) fn launched(&mut self, now: Time, vm: VmId, kind: &TypeName) {
        if let (Some(burstable), true) = (self.burstable, *kind == TypeName::from(MACHINE)) {
            self.machine = Some((vm, Balance::new(burstable, now)));
            self.is_throttled = burstable.initial.min(burstable.cap) == Credits::ZERO;
        }
    }

    /// Time passes up to `now`.
    pub(super) fn pass(&mut self, now: Time) {
        if let Some((_, balance)) = &mut self.machine {
            balance.pass(now, self.now);
        }
    }

    /// What is wrong with what a VM says that it has, now that time has passed.
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
    /// Looks at what those that sit on the machine use from now on.
    pub(super) fn look_at_use(&mut self) {
        let Some(burstable) = self.credits.burstable else { return };
        let (whole, mut now) = (u64::from(Ppm::ONE.get()), Use::default());
        // Without credits the processors are at their baseline, and so is what is used of them.
        let speed = if self.credits.is_throttled { burstable.baseline } else { Ppm::ONE };
        for seats in &self.processors {
            let used = seats.iter().flatten().map(|_| whole);
            now.most += speed.scale(used.sum::<u64>().min(whole));
        }
        // At the baseline only computing is slower: a larger part of the time goes to it.
        if !self.credits.checkpoints && !self.credits.is_throttled {
            now.most = now.most.min(self.usage_of_all(speed, |_| true));
        }
        now.least = self.usage_of_all(speed, |inside| self.is_unhindered(inside));
        self.credits.now = now;
    }

    /// What processes of these jobs use of their processors at this speed.
    fn usage_of_all(&self, speed: Ppm, which: impl Fn(&Inside) -> bool) -> u64 {
        let seated = self.inside.values().filter(|inside| which(inside));
        let usage = seated.filter_map(|inside| {
            let (_, on) = inside.seats.as_ref()?;
            let each = (0..on.len()).map(|n| u64::from(inside.job.usage.of_process(n).get()));
            Some(each.sum::<u64>())
        });
        speed.scale(usage.sum())
    }

    /// Whether nobody can keep a job from what it uses: it is in the foreground, nobody is below it,
    /// and it was never moved, which takes time in which it uses nothing.
    fn is_unhindered(&self, inside: &Inside) -> bool {
        let Some((Tier::Foreground, on)) = &inside.seats else { return false };
        let has_below = |p: &u32| {
            let seats = self.processors.get(*p as usize);
            seats.is_some_and(|seats| seats[Tier::Background as usize].is_some())
        };
        !inside.was_moved && !on.iter().any(has_below)
    }
}
