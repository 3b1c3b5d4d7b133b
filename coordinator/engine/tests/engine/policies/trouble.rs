//! Modelled machines with more failures than the provider's interruptions.

use std::collections::BTreeMap;

use dormouse_engine::drive::{MachineWorld, ModelledMachines, Reports};
use dormouse_model::{Command, Report};
use dormouse_units::{Attempt, HostId, Ppm, RandomStream, TaskId, Time, VmId};

/// Failures besides interruptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// Number of 100 attempts that fail, after half of their task's run time.
    pub(crate) failing: usize,
    /// Number of 100 VMs that their host can't create.
    pub(crate) refusing: usize,
    /// Lost hosts, each with the time of its loss; its VMs are lost too.
    pub(crate) lost_hosts: Vec<(u32, Time)>,
    /// Number of vCPUs of each of three hosts; zero: many.
    pub(crate) host_vcpus: u32,
}

impl Trouble {
    /// Returns whether the failures can keep a task from ever ending.
    pub(crate) fn can_be_fatal(&self) -> bool {
        self.failing > 0 || self.refusing > 0 || self.host_vcpus > 0
    }
}

/// An attempt that will fail: its host, VM, task and number.
type Doomed = (HostId, VmId, TaskId, Attempt);

/// Modelled machines with these failures.
#[derive(Debug)]
pub(crate) struct Troubled {
    machines: ModelledMachines,
    trouble: Trouble,
    random: RandomStream,
    /// Attempts that will fail, by time and in the order in which they were drawn.
    failures: BTreeMap<(Time, usize), Doomed>,
    drawn: usize,
}

impl Troubled {
    /// Makes the world without machines.
    pub(crate) fn new(trouble: &Trouble, seed: u64) -> Self {
        Self {
            machines: ModelledMachines::default(),
            trouble: trouble.clone(),
            random: RandomStream::new(seed, "trouble", 0),
            failures: BTreeMap::new(),
            drawn: 0,
        }
    }
}

impl MachineWorld for Troubled {
    fn execute_command(&mut self, now: Time, command: Command, out: &mut Reports) {
        if let Command::CreateVm { host, vm, .. } = &command
            && self.random.draw_below(100) < self.trouble.refusing
        {
            let why = "drawn".to_owned();
            return out.push_back((*host, Report::VmFailed { vm: *vm, why }));
        }
        if let Command::StartTask(start) = &command
            && self.random.draw_below(100) < self.trouble.failing
        {
            let at = now + start.runtime.part(Ppm::new(500_000));
            let doomed = (start.host, start.seats.vm, start.task, start.attempt);
            self.failures.insert((at, self.drawn), doomed);
            self.drawn += 1;
        }
        self.machines.execute_command(now, command, out);
    }

    fn next_at(&mut self) -> Option<Time> {
        let failure = self.failures.first_key_value().map(|((at, _), _)| *at);
        [self.machines.next_at(), failure].into_iter().flatten().min()
    }

    fn step_machines(&mut self, now: Time, out: &mut Reports) {
        let Some(first) = self.failures.first_entry().filter(|first| first.key().0 <= now) else {
            return self.machines.step_machines(now, out);
        };
        let (host, vm, task, attempt) = first.remove();
        // It is told to stop, as the modelled machines can't fail; one that has ended does not say
        // anything then.
        let mut said = Reports::new();
        let stop = Command::StopTask { host, vm, task, attempt, keep: false };
        self.machines.execute_command(now, stop, &mut said);
        for (host, report) in said {
            let report = match report {
                Report::TaskStopped { vm, task, attempt, .. } => {
                    let why = "drawn".to_owned();
                    let could_not_restore = false;
                    Report::TaskFailed { vm, task, attempt, why, real_cpu_us: 0, could_not_restore }
                }
                other => other,
            };
            out.push_back((host, report));
        }
    }

    fn host_lost(&mut self, host: HostId) {
        self.machines.host_lost(host);
    }

    fn is_idle(&self) -> bool {
        self.machines.is_idle()
    }
}
