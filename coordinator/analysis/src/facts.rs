//! Costs and delays measured in a live run, folded over its steps.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::{Effect, Event, LoadReport, Notice, Report, Step, VmEnd};
use dormouse_units::{Bytes, CheckpointSeq, HostId, Ppm, Span, TaskId, Time, VmId};

pub use jobs::{JobFacts, JobMove};
pub use spot_checks::{HostEvidence, SpotCheck};

use crate::HostHistory;

mod jobs;
mod spot_checks;
mod unit_cost;

/// Measurements of a live run. Call [`Self::see`] for each step in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFacts {
    /// Share of a host core that a vCPU of the reference speed has; zero if the run never began.
    pub share: Ppm,
    /// CPU time given to each task for all its work, real microseconds, by task.
    pub cpu_us: Vec<u64>,
    /// Hosts that ever joined.
    pub hosts: BTreeMap<HostId, HostHistory>,
    /// Duration of each freeze of a VM, from the command until it was frozen.
    pub freezes: Vec<CommandLatency>,
    /// Duration of each thaw of a VM, from the command until it ran again.
    pub thaws: Vec<CommandLatency>,
    /// Time from the command to the task's first own instruction, for tasks from scratch.
    pub starts: Vec<CommandLatency>,
    /// Time from the command to the task's first own instruction, for tasks restored from a
    /// checkpoint.
    pub restores: Vec<CommandLatency>,
    /// Cost of each checkpoint.
    pub checkpoints: Vec<CheckpointCost>,
    /// VMs that the provider took back, and when they were really gone.
    pub kills: Vec<VmKill>,
    /// Number of VMs that their host created only after their boot time was over.
    pub made_late: u32,
    /// CPU load of each host, including programs outside the run, as last reported.
    pub loads: BTreeMap<HostId, LoadReport>,
    /// Hosts that reported impossible measurements, with the first impossible measurement of each.
    pub disbelieved: BTreeMap<HostId, String>,
    /// Evidence on the hosts: their jails and the spot checks.
    pub evidence: HostEvidence,
    /// CPU time of the coordinator's process and its machine's name; `None` if the log does not
    /// tell.
    pub coordinator: Option<(Duration, String)>,
    /// Outages of the coordinator. Measurements of times before the last one may be missing.
    pub outages: Vec<CoordinatorOutage>,
    /// Greatest delay of the clock's alarm, real microseconds.
    pub clock_late_us: u64,
    /// Longest time that the journal took to make a step durable, real microseconds.
    pub journal_late_us: u64,
    /// Measurements of parallel jobs; empty in a run without any.
    pub jobs: JobFacts,
    /// Number of VMs that were lost with their host, or that their host could not create or keep.
    pub vms_lost: u32,
    /// The last refused launch of a VM with its reason; `None` if no launch was refused.
    pub last_refusal: Option<String>,
    /// Number of refused launches, without those of types of which the provider has no more VMs.
    pub refusals: u32,
    /// The last failed attempt at a task with its reason; `None` if no attempt failed.
    pub last_failure: Option<String>,
}

/// Time that a worker took to carry out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLatency {
    /// VM that the command was about.
    pub vm: VmId,
    /// Task that the command was about, if any.
    pub task: Option<TaskId>,
    /// Time from the command until it was carried out, in real microseconds.
    pub real_us: u64,
}

/// Cost of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointCost {
    /// Task that was checkpointed.
    pub task: TaskId,
    /// Number of the checkpoint.
    pub checkpoint: CheckpointSeq,
    /// Size of the checkpoint.
    pub bytes: Bytes,
    /// Time for which the task was stopped, real microseconds.
    pub real_held_us: u64,
    /// Time that CRIU took while the task was stopped, real microseconds.
    pub real_dump_us: u64,
    /// Time for which the task should have been stopped for the checkpoint, real microseconds.
    pub real_owed_us: u64,
    /// CPU time that CRIU used inside the task, real microseconds.
    pub real_criu_us: u64,
}

/// A VM that the provider took back, with emulated times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmKill {
    /// VM that was preempted.
    pub vm: VmId,
    /// Time at which the VM's notice ran out.
    pub due: Time,
    /// Time at which the VM's host reported it gone; `None` if it has not.
    pub gone: Option<Time>,
}

/// A period in which the run had no coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorOutage {
    /// Emulated time at which the run continued after the outage.
    pub at: Time,
    /// Emulated time from the last step before the outage until the run continued.
    pub outage: Span,
    /// Real time for which the coordinator was away, in microseconds, by its log.
    pub away_real_us: u64,
}

impl LiveFacts {
    /// Adds the measurements in the next step of the run.
    pub fn see(&mut self, step: &Step) {
        match &step.event {
            Event::HostJoined { host, name, offer } => {
                let (name, offer, joined) = (name.clone(), *offer, step.at);
                self.hosts.insert(*host, HostHistory { name, offer, joined, lost: None });
            }
            Event::HostLost { host, why, .. } => {
                if let Some(history) = self.hosts.get_mut(host) {
                    history.lost = Some((step.at, why.clone()));
                }
            }
            Event::Machine { report: Report::VmDestroyed { vm }, .. } => {
                if let Some(kill) = self.kills.iter_mut().find(|kill| kill.vm == *vm) {
                    kill.gone = Some(step.at);
                }
            }
            Event::Machine { report: Report::VmCreated { .. }, .. } => {
                let is_ready = |effect: &Effect| matches!(effect, Effect::VmReady { .. });
                self.made_late += u32::from(step.effects.iter().any(is_ready));
            }
            Event::Machine { report, .. } => self.see_report(report),
            Event::HostLoad { host, load, .. } => {
                self.loads.insert(*host, load.clone());
            }
            Event::Disbelieved { host, why } => {
                self.disbelieved.entry(*host).or_insert_with(|| why.clone());
            }
            Event::CoordinatorLoad { clock_late_us, journal_late_us, cpu_us, machine } => {
                self.clock_late_us = self.clock_late_us.max(*clock_late_us);
                self.journal_late_us = self.journal_late_us.max(*journal_late_us);
                self.coordinator = Some((Duration::from_micros(*cpu_us), machine.clone()));
            }
            Event::Resumed { outage, away_real_us } => self.outages.push(CoordinatorOutage {
                at: step.at,
                outage: *outage,
                away_real_us: *away_real_us,
            }),
            _ => {}
        }
        self.jobs.see(step);
        self.evidence.see(step);
        for effect in &step.effects {
            match *effect {
                Effect::VmEnded { vm, why: VmEnd::Preempted, .. } => {
                    self.kills.push(VmKill { vm, due: step.at, gone: None });
                }
                Effect::VmEnded { why: VmEnd::HostLost | VmEnd::Failed, .. } => self.vms_lost += 1,
                _ => {}
            }
        }
        for notice in &step.notices {
            match notice {
                // A launch that the provider has no capacity for is refused in virtual time as
                // well.
                Notice::LaunchRefused { unavailable: true, .. } => {}
                Notice::LaunchRefused { vm, why, .. } => {
                    self.refusals += 1;
                    self.last_refusal = Some(format!("{vm} at {}: {why}", step.at));
                }
                Notice::TaskFailed { task, vm, why } => {
                    self.last_failure = Some(format!("{task} on {vm} at {}: {why}", step.at));
                }
                _ => {}
            }
        }
    }

    fn see_report(&mut self, report: &Report) {
        match *report {
            Report::VmFrozen { vm, real_took_us: real_us } => {
                self.freezes.push(CommandLatency { vm, task: None, real_us });
            }
            Report::VmThawed { vm, real_took_us: real_us } => {
                self.thaws.push(CommandLatency { vm, task: None, real_us });
            }
            Report::TaskStarted { vm, task, done, real_took_us: real_us, .. } => {
                let list = if done == Ppm::ZERO { &mut self.starts } else { &mut self.restores };
                list.push(CommandLatency { vm, task: Some(task), real_us });
            }
            Report::CheckpointTaken {
                task,
                checkpoint,
                bytes,
                real_held_us,
                real_dump_us,
                real_owed_us,
                real_criu_us,
                ..
            } => self.checkpoints.push(CheckpointCost {
                task,
                checkpoint,
                bytes,
                real_held_us,
                real_dump_us,
                real_owed_us,
                real_criu_us,
            }),
            _ => {}
        }
    }
}
