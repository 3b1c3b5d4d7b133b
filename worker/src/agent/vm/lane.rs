//! The quota of each vCPU, and what is counted under it.

use std::time::Instant;

use dormouse_units::Ppm;
use dormouse_vm::Seat;

use super::{
    attempt::{Attempt, Phase},
    meter::Meter,
    owner::Owner,
};
use crate::agent::cores::Core;

/// One vCPU.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) meter: Meter,
    /// The quota in force, in ppm of a host core; `None`: lifted.
    quota: Option<u32>,
    /// Of the task whose quota it is: emulated time on this VM, and CPU time here, of all its work.
    rate: (u64, u64),
    /// The host core to which its tasks are bound, where there are two.
    core: Option<Core>,
}

/// What a vCPU should be.
struct Wish {
    quota: Option<u32>,
    rate: (u64, u64),
    /// Its tasks may run, and no more than promised.
    counts: bool,
}

impl Owner {
    /// Makes the quota of vCPU `cpu` what it should be now, and counts accordingly.
    ///
    /// A few reads and writes of the kernel's files, each of some ten microseconds.
    pub(crate) fn refresh(&mut self, cpu: u32) {
        // A frozen VM has its quotas; what they should be is seen to at the thaw.
        if self.machine.is_frozen() {
            return;
        }
        let wish = self.wish(cpu);
        self.bind(cpu, wish.quota);
        let Some(lane) = self.lanes.get(cpu as usize) else { return };
        if lane.quota == wish.quota && lane.meter.is_on() == wish.counts {
            return;
        }
        // Counted under the old quota before the new one is in force.
        self.settle(cpu);
        let Some(lane) = self.lanes.get_mut(cpu as usize) else { return };
        lane.meter.stop();
        if lane.quota != wish.quota {
            if let Err(error) = self.groups.set_quota(cpu, wish.quota) {
                self.fail(&error);
                return;
            }
            lane.quota = wish.quota;
        }
        lane.rate = wish.rate;
        if let (true, Some(quota)) = (wish.counts, wish.quota) {
            let slice = self.groups.quota(quota).slice();
            match self.groups.vcpu_cpu_ns(cpu) {
                Ok(ns) => lane.meter.start(Instant::now(), ns, quota, slice),
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Two tasks run on one host core, or their tiers would mean nothing; one alone on any.
    fn bind(&mut self, cpu: u32, quota: Option<u32>) {
        let runs = |a: &&Attempt| {
            a.cpu == cpu && a.process.is_some() && !matches!(a.phase, Phase::Dying | Phase::Gone)
        };
        let shared = self.attempts.iter().filter(runs).count() > 1;
        let Some(lane) = self.lanes.get_mut(cpu as usize) else { return };
        if shared == lane.core.is_some() {
            return;
        }
        let cores = &self.host.cores;
        lane.core = if shared { cores.place(quota.unwrap_or(1_000_000)) } else { None };
        let set = lane.core.as_ref().map_or(*cores.all(), Core::set);
        if let Err(error) = self.groups.bind(cpu, &set) {
            self.fail(&error);
        }
    }

    pub(crate) fn refresh_all(&mut self) {
        for cpu in 0..self.groups.vcpus() {
            self.refresh(cpu);
        }
    }

    /// Counts up to now.
    pub(crate) fn settle(&mut self, cpu: u32) {
        let Some(lane) = self.lanes.get_mut(cpu as usize).filter(|lane| lane.meter.is_on()) else {
            return;
        };
        match self.groups.vcpu_cpu_ns(cpu) {
            Ok(ns) => {
                let received = lane.meter.settle(Instant::now(), ns);
                let (runtime_us, cpu_us) = lane.rate;
                // What is a microsecond of CPU time here is so much of a vCPU's time there.
                let used = u128::from(received) * u128::from(runtime_us)
                    / (u128::from(cpu_us.max(1)) * 1000);
                self.used_vcpu_us += u64::try_from(used).unwrap_or(u64::MAX);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Counts up to now and no further.
    pub(crate) fn stop_counting(&mut self) {
        for cpu in 0..self.groups.vcpus() {
            self.settle(cpu);
        }
        for lane in &mut self.lanes {
            lane.meter.stop();
        }
    }

    /// The quota follows the faster of the vCPU's two tasks; which of them gets the time
    /// is their groups' priority.
    fn wish(&self, cpu: u32) -> Wish {
        let here = || self.attempts.iter().filter(|a| a.cpu == cpu);
        let runs = |a: &&Attempt| matches!(a.phase, Phase::Running);
        let will_run = |a: &&Attempt| a.is_busy() || matches!(a.phase, Phase::Held { .. });
        let fastest = |attempts: &mut dyn Iterator<Item = &Attempt>| {
            attempts
                .map(|a| (self.quota_of(a), (a.order.runtime_us, a.order.cpu_us)))
                .max_by_key(|(quota, _)| *quota)
        };
        let running = fastest(&mut here().filter(runs));
        // A throttled task dies late.
        let lifted = here().any(|a| matches!(a.phase, Phase::Dying));
        // Births, dumps and restores lift it for themselves, or use time of their own.
        let counts = running.is_some() && !lifted && !here().any(Attempt::is_busy);
        let (quota, rate) = match running.or_else(|| fastest(&mut here().filter(will_run))) {
            Some((quota, rate)) => (Some(quota), rate),
            // Of an empty vCPU nobody notices the quota, and the next task may have the same.
            None => (self.lanes.get(cpu as usize).and_then(|lane| lane.quota), (0, 1)),
        };
        Wish { quota: quota.filter(|_| !lifted), rate, counts }
    }

    /// The share of a host core this attempt should get now, standing still or not.
    pub(crate) fn quota_of(&self, attempt: &Attempt) -> u32 {
        let (task, number) = attempt.key;
        let seat = self.machine.seats().iter().find(|s| s.task == task && s.attempt == number);
        let ceiling = seat.map_or(Ppm::ONE, |s| self.machine.ceiling(&Seat { held: false, ..*s }));
        u32::try_from(ceiling.of(u64::from(attempt.share))).unwrap_or(u32::MAX).max(1)
    }
}
