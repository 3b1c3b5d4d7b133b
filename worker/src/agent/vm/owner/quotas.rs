//! The quota of each vCPU on which there are tasks of one process.

use dormouse_units::Ppm;

use super::VmOwner;
use crate::agent::{cores::BoundCore, vm::attempt::VmAttempt};

impl VmOwner {
    /// Updates the quota of vCPU `cpu`.
    ///
    /// This takes a few reads and writes of the kernel's files, each of some ten microseconds.
    pub(crate) fn refresh_quota(&mut self, cpu: u32) {
        // A frozen VM has its quotas; what they should be is seen to at the thaw. What jobs are
        // owed is paid to all their processes at a time.
        if self.is_frozen() || self.others_on(&[cpu], false).is_err() {
            return;
        }
        let quota = self.wanted_quota(cpu);
        self.bind_vcpu(cpu, quota);
        let Some(lane) = self.lanes.get_mut(cpu as usize) else { return };
        if lane.quota == quota {
            return;
        }
        match self.machine.set_quota(cpu, quota) {
            Ok(()) => lane.quota = quota,
            Err(error) => self.fail_vm(&error),
        }
    }

    /// Binds the two tasks of a vCPU to one host core, as their tiers have no effect otherwise; a single task may run
    /// on any core.
    fn bind_vcpu(&mut self, cpu: u32, quota: Option<u32>) {
        let lives = &self.lives;
        let runs =
            |a: &&VmAttempt| a.first_cpu() == cpu && a.process.is_some() && !lives.is_dead(a.key);
        let shared = self.attempts.iter().filter(runs).count() > 1;
        let Some(lane) = self.lanes.get_mut(cpu as usize) else { return };
        if shared == lane.core.is_some() {
            return;
        }
        let cores = &self.context.cores;
        lane.core = if shared { cores.place_vcpu(quota.unwrap_or(1_000_000)) } else { None };
        let set = lane.core.as_ref().map_or(*cores.all_cores(), BoundCore::core_set);
        if let Err(error) = self.machine.bind(cpu, &set) {
            self.fail_vm(&error);
        }
    }

    pub(crate) fn refresh_all(&mut self) {
        for cpu in 0..self.vcpu_count() {
            self.refresh_quota(cpu);
        }
    }

    /// Returns the quota of a vCPU, which follows the faster of its two tasks; their groups' priorities decide which of
    /// them gets the time. A slot in which a process starts, ends or is dumped is exempt from the quota, so that its
    /// neighbour doesn't run faster.
    fn wanted_quota(&self, cpu: u32) -> Option<u32> {
        let here = self.attempts.iter().filter(|a| a.first_cpu() == cpu);
        let works = here.filter(|a| self.lives.is_busy(a.key) || self.lives.is_running(a.key));
        let quotas: Vec<(u32, Ppm)> =
            works.filter_map(|a| Some((self.quota_of(a), a.task_promise()?.times))).collect();
        match quotas[..] {
            // Of an empty vCPU nobody notices the quota, and the next task may have the same.
            [] => self.lanes.get(cpu as usize).and_then(|lane| lane.quota),
            [(quota, times)] => {
                let enlarged = u64::from(quota) * u64::from(times.get()) / 1_000_000;
                Some(u32::try_from(enlarged).unwrap_or(u32::MAX))
            }
            // What one of two should catch up the other might get.
            _ => quotas.iter().map(|(quota, _)| *quota).max(),
        }
    }

    /// Returns the share of a host core, in ppm, that an attempt is promised now, unless it is stopped; for a
    /// background, the share that the foreground leaves.
    pub(crate) fn share_promised(&self, attempt: &VmAttempt) -> u32 {
        let (task, number) = attempt.key;
        let share = attempt.task_promise().map_or(0, |promise| promise.share);
        let speed = self.model.task_speed(task, number).unwrap_or(Ppm::ONE);
        u32::try_from(speed.scale_number(u64::from(share))).unwrap_or(u32::MAX)
    }

    /// Returns the share of a host core that an attempt should get now, whether it is stopped or not, in ppm.
    pub(crate) fn quota_of(&self, attempt: &VmAttempt) -> u32 {
        let (task, number) = attempt.key;
        let share = attempt.task_promise().map_or(0, |promise| promise.share);
        let ceiling = self.model.speed_ceiling(task, number).unwrap_or(Ppm::ONE);
        u32::try_from(ceiling.scale_number(u64::from(share))).unwrap_or(u32::MAX).max(1)
    }
}
