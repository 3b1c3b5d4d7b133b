//! Modelled machines: the same state machines that are the reference of real ones, with nothing
//! to wait for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dormouse_cloud::Burstable;
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Cpus, HostId, Ppm, Seats, Span, TaskId, Time, VmId,
};
use dormouse_vm::{
    CreditSpec, GangWork, Hold, MachineSpec, Model, Sharing, TwoTierModel, Work, WorkEvent,
};

use super::world::{Reports, World};
use crate::{Command, Report, StartTask};

/// How parallel jobs fare on modelled machines.
#[derive(Clone, Copy, Debug)]
pub struct TwoTierLaw {
    /// How two jobs share a vCPU.
    pub sharing: Sharing,
    /// What a migration costs the job that is moved.
    pub migration_cost: Span,
    /// For all chance in it.
    pub seed: u64,
}

/// A modelled VM.
#[derive(Clone, Debug)]
enum Machine {
    /// One that runs tasks of one process, with credits and checkpoints.
    Tasks(Model),
    /// One of two tiers that runs parallel jobs.
    TwoTier(TwoTierModel),
}

impl Machine {
    fn next_at(&mut self) -> Option<Time> {
        match self {
            Self::Tasks(model) => model.next_at(),
            Self::TwoTier(model) => model.next_end(),
        }
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Tasks(model) => model.machine().seats().is_empty(),
            Self::TwoTier(model) => model.is_empty(),
        }
    }
}

/// All modelled machines.
#[derive(Debug)]
pub struct Modelled {
    law: TwoTierLaw,
    vms: BTreeMap<VmId, (HostId, Machine)>,
    /// When each VM has something to do; entries may be out of date.
    agenda: BinaryHeap<Reverse<(Time, VmId)>>,
    /// VMs whose agenda has to be looked at again.
    touched: Vec<VmId>,
    checkpoints: BTreeMap<TaskId, CheckpointSeq>,
}

impl Modelled {
    /// No machines yet; parallel jobs on those to come fare by `law`.
    #[must_use]
    pub fn new(law: TwoTierLaw) -> Self {
        let (agenda, touched) = (BinaryHeap::new(), Vec::new());
        Self { law, vms: BTreeMap::new(), agenda, touched, checkpoints: BTreeMap::new() }
    }
}

impl Default for Modelled {
    /// For runs without parallel jobs.
    fn default() -> Self {
        Self::new(TwoTierLaw { sharing: Sharing::PERFECT, migration_cost: Span::ZERO, seed: 0 })
    }
}

impl World for Modelled {
    fn is_idle(&self) -> bool {
        self.vms.values().all(|(_, machine)| machine.is_idle())
    }

    fn host_lost(&mut self, lost: HostId) {
        self.vms.retain(|_, (host, _)| *host != lost);
    }

    fn next_at(&mut self) -> Option<Time> {
        while let Some(vm) = self.touched.pop() {
            if let Some(at) = self.vms.get_mut(&vm).and_then(|(_, machine)| machine.next_at()) {
                self.agenda.push(Reverse((at, vm)));
            }
        }
        loop {
            let &Reverse((at, vm)) = self.agenda.peek()?;
            if self.vms.get_mut(&vm).and_then(|(_, machine)| machine.next_at()) == Some(at) {
                return Some(at);
            }
            self.agenda.pop();
        }
    }

    fn step(&mut self, now: Time, out: &mut Reports) {
        let Some(&Reverse((_, vm))) = self.agenda.peek() else { return };
        match self.vms.get_mut(&vm) {
            Some((host, Machine::TwoTier(model))) => {
                while let Some((task, attempt)) = model.take_ended(now) {
                    let (verified, real_cpu_us) = (true, 0);
                    let report = Report::TaskFinished { vm, task, attempt, verified, real_cpu_us };
                    out.push_back((*host, report));
                }
                self.touched.push(vm);
            }
            Some((_, Machine::Tasks(_))) => self.step_tasks(now, vm, out),
            None => {}
        }
    }

    fn obey(&mut self, now: Time, command: Command, out: &mut Reports) {
        match command {
            Command::CreateVm { host, vm, vcpus, memory, burstable, two_tier, .. } => {
                let machine = if two_tier {
                    let TwoTierLaw { sharing, seed, .. } = self.law;
                    Machine::TwoTier(TwoTierModel::new(vcpus, sharing, seed))
                } else {
                    let credits = burstable.map(credit_spec);
                    Machine::Tasks(Model::new(now, MachineSpec { vcpus, memory, credits }))
                };
                self.vms.insert(vm, (host, machine));
                out.push_back((host, Report::VmCreated { vm }));
            }
            Command::DestroyVm { host, vm } => {
                self.vms.remove(&vm);
                out.push_back((host, Report::VmDestroyed { vm }));
            }
            Command::FreezeVm { host, vm } => {
                if let Some((_, Machine::Tasks(model))) = self.vms.get_mut(&vm) {
                    model.freeze(now);
                    out.push_back((host, Report::VmFrozen { vm, real_took_us: 0 }));
                }
            }
            Command::ThawVm { host, vm } => {
                if let Some((_, Machine::Tasks(model))) = self.vms.get_mut(&vm) {
                    model.thaw(now);
                    out.push_back((host, Report::VmThawed { vm, real_took_us: 0 }));
                    self.after_change(vm, out);
                }
            }
            Command::StartTask(start) => self.start(now, start, out),
            Command::StopTask { host, vm, task, attempt, keep } => {
                self.stop(now, (host, vm), task, attempt, keep, out);
            }
            Command::SetMode { vm, task, attempt, mode, .. } => {
                if let Some((_, Machine::Tasks(model))) = self.vms.get_mut(&vm) {
                    model.set_mode(now, task, attempt, mode);
                    self.after_change(vm, out);
                }
            }
            Command::PromoteTask { vm, task, attempt, .. } => {
                if let Some((_, Machine::TwoTier(model))) = self.vms.get_mut(&vm)
                    && model.swap(now, task, attempt)
                {
                    self.touched.push(vm);
                }
            }
            Command::MoveTask { vm, task, attempt, on, .. } => {
                self.migrate(now, vm, task, attempt, on);
            }
        }
    }
}

impl Modelled {
    /// Lets a VM do what it has to do at `now`.
    fn step_tasks(&mut self, now: Time, vm: VmId, out: &mut Reports) {
        let Some((host, Machine::Tasks(model))) = self.vms.get_mut(&vm) else { return };
        let host = *host;
        let before = model.machine().seats().to_vec();
        for event in model.step(now) {
            let report = match event {
                // Nobody tells a modelled task when to stand still.
                WorkEvent::Due { .. } => continue,
                WorkEvent::Finished { task, attempt } => {
                    model.stop(now, task, attempt);
                    Report::TaskFinished { vm, task, attempt, verified: true, real_cpu_us: 0 }
                }
                WorkEvent::Checkpointed { task, attempt, done } => {
                    let seq = self.checkpoints.entry(task).or_default();
                    *seq = seq.next();
                    let memory = before
                        .iter()
                        .find(|s| s.task == task && s.attempt == attempt)
                        .map_or(Bytes::ZERO, |s| s.memory);
                    Report::CheckpointTaken {
                        vm,
                        task,
                        attempt,
                        checkpoint: *seq,
                        done,
                        bytes: memory,
                        real_held_us: 0,
                        real_dump_us: 0,
                        real_owed_us: 0,
                        real_criu_us: 0,
                    }
                }
                WorkEvent::CreditsTurned(balance) => Report::Credits { vm, balance },
            };
            out.push_back((host, report));
        }
        self.after_change(vm, out);
    }

    /// Reports the credits of a burstable VM whose use changed, and looks at what it does next.
    fn after_change(&mut self, vm: VmId, out: &mut Reports) {
        let Some((host, Machine::Tasks(model))) = self.vms.get(&vm) else { return };
        if let Some(balance) = model.machine().credits() {
            out.push_back((*host, Report::Credits { vm, balance }));
        }
        self.touched.push(vm);
    }

    fn start(&mut self, now: Time, start: StartTask, out: &mut Reports) {
        let StartTask { host, task, attempt, .. } = start;
        let Seats { vm, tier, cpus } = start.seats;
        let done = start.from.map(|(_, done)| done).unwrap_or_default();
        let started = Report::TaskStarted { vm, task, attempt, done, real_took_us: 0 };
        match self.vms.get_mut(&vm) {
            Some((_, Machine::TwoTier(model))) => {
                let Some(job) = start.job else { return };
                let (runtime, usage, on) = (job.runtime, job.usage.clone(), cpus);
                model.start(now, GangWork { task, attempt, runtime, usage, tier, on });
                // It runs at once, which is not worth a word.
                self.touched.push(vm);
            }
            Some((_, Machine::Tasks(model))) => {
                let work = Work {
                    task,
                    attempt,
                    memory: start.memory,
                    runtime: start.runtime,
                    done,
                    mode: start.mode,
                    cpu: cpus.first().copied(),
                    tier,
                    checkpoints: start.checkpoints,
                    checkpoint_cost: start.checkpoint_cost,
                    hold: Hold::WhenDue,
                };
                let report = match model.start(now, &work) {
                    Ok(_) => started,
                    Err(no) => {
                        let why = no.to_string();
                        Report::TaskFailed { vm, task, attempt, why, real_cpu_us: 0 }
                    }
                };
                out.push_back((host, report));
                self.after_change(vm, out);
            }
            None => {}
        }
    }

    fn migrate(&mut self, now: Time, vm: VmId, task: TaskId, attempt: Attempt, on: Cpus) {
        let takes = self.law.migration_cost;
        if let Some((_, Machine::TwoTier(model))) = self.vms.get_mut(&vm)
            && model.migrate(now, task, attempt, on, takes)
        {
            self.touched.push(vm);
        }
    }

    /// A model stops a task without taking time for a checkpoint: the policies that are
    /// modelled here stop tasks of running VMs only to go on elsewhere, which costs them there.
    fn stop(
        &mut self,
        now: Time,
        (host, vm): (HostId, VmId),
        task: TaskId,
        attempt: Attempt,
        keep: bool,
        out: &mut Reports,
    ) {
        let (done, two_tier) = match self.vms.get_mut(&vm) {
            Some((_, Machine::Tasks(model))) => (model.stop(now, task, attempt), false),
            Some((_, Machine::TwoTier(model))) => {
                (model.stop(now, task, attempt).then_some(Ppm::ZERO), true)
            }
            None => return,
        };
        let Some(done) = done else { return };
        let kept = (keep && !two_tier).then(|| {
            let seq = self.checkpoints.entry(task).or_default();
            *seq = seq.next();
            (*seq, done)
        });
        out.push_back((host, Report::TaskStopped { vm, task, attempt, kept, real_cpu_us: 0 }));
        if two_tier {
            self.touched.push(vm);
        } else {
            self.after_change(vm, out);
        }
    }
}

fn credit_spec(b: Burstable) -> CreditSpec {
    CreditSpec {
        baseline: b.baseline,
        earned_per_hour: b.earned_per_hour,
        initial: b.initial,
        cap: b.cap,
    }
}
