//! What a live run shows beside its outcome: measured costs and delays. Folded over its steps.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::{Effect, Event, HostLoad, Notice, Report, Step, VmEnd};
use dormouse_units::{Bytes, CheckpointSeq, HostId, Ppm, Span, TaskId, Time, VmId};

pub use jobs::{JobFacts, MoveFact};
pub use spot_checks::{HostEvidence, SpotCheck};

use crate::HostHistory;

mod jobs;
mod spot_checks;
mod unit_cost;

/// What was measured in a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFacts {
    /// Share of a host core per vCPU of the reference speed; zero if the run never began.
    pub share: Ppm,
    /// CPU time each task is given for all its work, by task, real microseconds.
    pub cpu_us: Vec<u64>,
    /// The hosts that ever joined.
    pub hosts: BTreeMap<HostId, HostHistory>,
    /// The time that freezing a VM took, each time.
    pub freezes: Vec<Latency>,
    /// The time that thawing a VM took, each time.
    pub thaws: Vec<Latency>,
    /// From the command to the task's first own instruction, for tasks from scratch.
    pub starts: Vec<Latency>,
    /// The same for tasks restored from a checkpoint.
    pub restores: Vec<Latency>,
    /// What each checkpoint cost.
    pub checkpoints: Vec<CheckpointCost>,
    /// The VMs that were taken away, and when they were really gone.
    pub kills: Vec<Kill>,
    /// VMs that their host had made only after they should have booted.
    pub made_late: u32,
    /// What each host did besides, as it said last.
    pub loads: BTreeMap<HostId, HostLoad>,
    /// Hosts that measured what can't be, and what that was first.
    pub disbelieved: BTreeMap<HostId, String>,
    /// Evidence on the hosts: their jails, and the spot checks.
    pub evidence: HostEvidence,
    /// CPU time of the coordinator's process, and the kernel it ran on; `None`: the log does not say.
    pub coordinator: Option<(Duration, String)>,
    /// The time at which it went on from its log: what is not in that is of the time since the last of them.
    pub outages: Vec<Outage>,
    /// The most that the clock's alarm rang late, real microseconds.
    pub clock_late_us: u64,
    /// The longest that the journal took to make a step durable, real microseconds.
    pub journal_late_us: u64,
    /// What was measured of parallel jobs; nothing in a run without any.
    pub jobs: JobFacts,
    /// VMs that were lost though nobody wanted it: their host was, or could not make or keep them.
    pub vms_lost: u32,
    /// The last launch that was refused, and why.
    pub last_refusal: Option<String>,
    /// Number of launches that were refused, but for those of types that could not be had.
    pub refusals: u32,
    /// The last attempt that failed, and why.
    pub last_failure: Option<String>,
}

/// The time that the worker took to carry out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// VM that the command was about.
    pub vm: VmId,
    /// The task, where it is about one.
    pub task: Option<TaskId>,
    /// The time that it took, in real microseconds.
    pub real_us: u64,
}

/// What a checkpoint cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointCost {
    /// Task that was checkpointed.
    pub task: TaskId,
    /// Number of the checkpoint.
    pub checkpoint: CheckpointSeq,
    /// Size of the checkpoint.
    pub bytes: Bytes,
    /// The time for which the task stood still, real microseconds.
    pub real_held_us: u64,
    /// How much of that CRIU took, real microseconds.
    pub real_dump_us: u64,
    /// The time for which it had to stand still, real microseconds.
    pub real_owed_us: u64,
    /// CPU time that CRIU used inside the task, real microseconds.
    pub real_criu_us: u64,
}

/// A VM that the provider took, both in emulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// VM that was taken.
    pub vm: VmId,
    /// The time at which its notice was over.
    pub due: Time,
    /// The time at which its host said that it was gone; `None`: it has not.
    pub gone: Option<Time>,
}

/// A time without a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The time at which the run went on.
    pub at: Time,
    /// How much emulated time had passed since its last step.
    pub outage: Span,
    /// For how long its coordinator had been away, real microseconds, as far as its log says.
    pub away_real_us: u64,
}

impl LiveFacts {
    /// Takes in a step.
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
            Event::Resumed { outage, away_real_us } => self.outages.push(Outage {
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
                    self.kills.push(Kill { vm, due: step.at, gone: None });
                }
                Effect::VmEnded { why: VmEnd::HostLost | VmEnd::Failed, .. } => self.vms_lost += 1,
                _ => {}
            }
        }
        for notice in &step.notices {
            match notice {
                // What the provider has no more of is missing in virtual time, too.
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
                self.freezes.push(Latency { vm, task: None, real_us });
            }
            Report::VmThawed { vm, real_took_us: real_us } => {
                self.thaws.push(Latency { vm, task: None, real_us });
            }
            Report::TaskStarted { vm, task, done, real_took_us: real_us, .. } => {
                let list = if done == Ppm::ZERO { &mut self.starts } else { &mut self.restores };
                list.push(Latency { vm, task: Some(task), real_us });
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
