//! The simplest scheduler there is: a list of VMs, tasks in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dormouse_cloud::Market;
use dormouse_units::{Bytes, Price, Span, TaskId, Time, TypeName, VmId};

use super::{Given, Scheduling};
use crate::dynamic::{BagScheduler, Parts};
use crate::problem::{KindId, Problem};
use crate::{
    BagSchedulerConfig, Decision, Fleet, Notice, Plan, PlanError, Policy, StartReason, feasibility,
};
use dormouse_units::{Mode, Seats};

/// The tasks in their order on the VMs of `scheduler.fleet`; with a plan, that and nothing else.
pub(super) struct Fifo;

impl Scheduling for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn about(&self) -> &'static str {
        "the tasks in their order on a given list of VMs: fleet"
    }

    fn build(&self, given: Given<'_>, plan: Option<Plan>) -> Result<Box<dyn Policy>, PlanError> {
        if plan.is_some() {
            return BagScheduler::boxed(given, plan, Parts::NONE);
        }
        feasibility::check_fleet(&given)?;
        Ok(Box::new(InOrder::new(given.config, given.problem)))
    }

    fn fleet<'a>(&self, config: &'a BagSchedulerConfig) -> Option<&'a [Fleet]> {
        Some(&config.fleet)
    }

    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        config.fleet.iter().map(|fleet| fleet.market).collect()
    }
}

/// Launches its fleet at the beginning and starts the next task of the bag wherever a vCPU and
/// the memory are free. What a lost, preempted or hibernated VM ran comes first again, and a VM
/// like it is launched; it doesn't wait for a resume. VMs go when no task is left to start and
/// none runs on them. A refused launch is tried again later, each time waiting twice as long.
///
/// A notice costs constant time, however many tasks there are, as long as memory doesn't bind.
#[derive(Debug)]
struct InOrder {
    problem: Problem,
    fleet: Vec<Wanted>,
    waiting: VecDeque<(TaskId, StartReason)>,
    vms: BTreeMap<VmId, Vm>,
    /// The ready VMs with a free vCPU.
    with_room: BTreeSet<VmId>,
    /// Refused, to be launched again.
    refused: Vec<Wanted>,
    failures: BTreeMap<TaskId, u32>,
    /// Being stopped with a checkpoint on a VM that leaves.
    held: BTreeMap<TaskId, VmId>,
    max_failures: u32,
    next_vm: VmId,
    retry_after: Span,
    retries: u32,
    max_retries: u32,
}

/// A VM of the fleet: its type, how it is bought, and most to be paid for it.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    kind: KindId,
    market: Market,
    bid: Option<Price>,
}

#[derive(Debug)]
struct Vm {
    wanted: Wanted,
    ready: bool,
    running: Vec<TaskId>,
    memory: Bytes,
}

impl InOrder {
    fn new(config: &BagSchedulerConfig, problem: Problem) -> Self {
        let kind_of = |name: &TypeName| problem.kinds.iter().position(|k| k.name == *name);
        let fleet = config.fleet.iter().flat_map(|f| {
            let wanted = kind_of(&f.kind).map(|kind| Wanted { kind, market: f.market, bid: f.bid });
            std::iter::repeat_n(wanted, f.count as usize).flatten()
        });
        Self {
            fleet: fleet.collect(),
            waiting: (0_u32..)
                .take(problem.tasks())
                .map(|t| (TaskId::new(t), StartReason::Planned))
                .collect(),
            problem,
            vms: BTreeMap::new(),
            with_room: BTreeSet::new(),
            refused: Vec::new(),
            failures: BTreeMap::new(),
            held: BTreeMap::new(),
            max_failures: config.max_failures,
            next_vm: VmId::new(0),
            retry_after: config.retry_after,
            retries: 0,
            max_retries: config.max_retries,
        }
    }

    fn launch(&mut self, wanted: Wanted, out: &mut Vec<Decision>) {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        let (running, memory) = (Vec::new(), Bytes::ZERO);
        self.vms.insert(vm, Vm { wanted, ready: false, running, memory });
        let Wanted { kind, market, bid } = wanted;
        let kind = self.problem.kinds[kind].name.clone();
        out.push(Decision::Launch { vm, kind, market, bid });
    }

    fn fits(&self, vm: VmId, task: TaskId) -> bool {
        self.vms.get(&vm).is_some_and(|state| {
            let memory = state.memory + self.problem.memory(task);
            self.problem.whole(task, state.wanted.kind).is_some()
                && memory <= self.problem.kinds[state.wanted.kind].memory
        })
    }

    /// Starts the tasks that come next as long as there is room; then gives back what is idle.
    fn pump(&mut self, touched: Option<VmId>, out: &mut Vec<Decision>) {
        while let Some(&(task, reason)) = self.waiting.front() {
            if self.held.contains_key(&task) {
                break;
            }
            let Some(&vm) = self.with_room.iter().find(|&&vm| self.fits(vm, task)) else { break };
            self.waiting.pop_front();
            let memory = self.problem.memory(task);
            let Some(state) = self.vms.get_mut(&vm) else { break };
            state.running.push(task);
            state.memory = state.memory + memory;
            if state.running.len() >= self.problem.kinds[state.wanted.kind].vcpus {
                self.with_room.remove(&vm);
            }
            let on = Seats::first_free(vm);
            out.push(Decision::Start { task, on, mode: Mode::Burst, reason });
            if self.waiting.is_empty() {
                // Nothing is left to start: from now on only VMs that finish are looked at.
                let idle: Vec<_> = self.vms.keys().copied().collect();
                idle.into_iter().for_each(|vm| self.end_if_idle(vm, out));
            }
        }
        if let Some(vm) = touched {
            self.end_if_idle(vm, out);
        }
    }

    fn end_if_idle(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let idle = self.vms.get(&vm).is_some_and(|state| state.running.is_empty());
        if idle && self.waiting.is_empty() {
            self.vms.remove(&vm);
            self.with_room.remove(&vm);
            out.push(Decision::Terminate { vm });
        }
    }

    /// A task isn't on this VM any more. False if it wasn't.
    fn leave(&mut self, vm: VmId, task: TaskId) -> bool {
        let Some(state) = self.vms.get_mut(&vm) else { return false };
        let Some(at) = state.running.iter().position(|&t| t == task) else { return false };
        state.running.swap_remove(at);
        state.memory = state.memory.saturating_sub(self.problem.memory(task));
        if state.ready {
            self.with_room.insert(vm);
        }
        true
    }

    /// Takes a VM's tasks off it, to come first again: `stop` says whether attempts have to be
    /// stopped, and whether with a checkpoint.
    fn vacate(&mut self, vm: VmId, stop: Option<bool>, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.get_mut(&vm) else { return };
        (state.ready, state.memory) = (false, Bytes::ZERO);
        let tasks = std::mem::take(&mut state.running);
        self.with_room.remove(&vm);
        for &task in tasks.iter().rev() {
            self.waiting.push_front((task, StartReason::Migrated));
            if let Some(keep) = stop {
                out.push(Decision::Stop { task, vm, keep });
                if keep {
                    self.held.insert(task, vm);
                }
            }
        }
    }

    /// The VM is gone: another one like it takes its place.
    fn replace(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.remove(&vm) else { return };
        self.held.retain(|_, on| *on != vm);
        if !self.waiting.is_empty() {
            self.launch(state.wanted, out);
        }
        self.pump(None, out);
    }

    fn release(&mut self, task: TaskId, vm: VmId, out: &mut Vec<Decision>) {
        if self.held.get(&task) == Some(&vm) {
            self.held.remove(&task);
            self.pump(None, out);
        }
    }

    fn refuse(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.remove(&vm) else { return };
        if self.refused.is_empty() && self.retries < self.max_retries {
            let at = now + self.retry_after.times(1 << self.retries.min(32));
            out.push(Decision::Wake { at, token: 0 });
        }
        self.refused.push(state.wanted);
    }

    fn failed(&mut self, task: TaskId, vm: VmId, out: &mut Vec<Decision>) {
        if self.held.get(&task) == Some(&vm) {
            return self.release(task, vm, out);
        }
        if !self.leave(vm, task) {
            return;
        }
        let failures = self.failures.entry(task).or_default();
        *failures += 1;
        if *failures < self.max_failures {
            self.waiting.push_front((task, StartReason::Retried));
        }
        self.pump(Some(vm), out);
    }
}

impl InOrder {
    /// Asks again for what was refused.
    fn launch_refused(&mut self, out: &mut Vec<Decision>) {
        for wanted in std::mem::take(&mut self.refused) {
            if !self.waiting.is_empty() {
                self.launch(wanted, out);
            }
        }
    }
}

impl Policy for InOrder {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.hear(now, notice, out);
        }
    }
}

impl InOrder {
    fn hear(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => {
                if !self.waiting.is_empty() {
                    for wanted in std::mem::take(&mut self.fleet) {
                        self.launch(wanted, out);
                    }
                }
            }
            Notice::VmReady { vm } | Notice::VmResumed { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    state.ready = true;
                    self.retries = 0;
                    self.with_room.insert(vm);
                    self.pump(Some(vm), out);
                }
            }
            Notice::LaunchRefused { vm, .. } => self.refuse(now, vm, out),
            Notice::VmHibernating { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    state.ready = false;
                    self.with_room.remove(&vm);
                }
            }
            Notice::VmHibernated { vm } => {
                if self.vms.contains_key(&vm) {
                    self.vacate(vm, Some(false), out);
                    out.push(Decision::Terminate { vm });
                    self.replace(vm, out);
                }
            }
            Notice::VmPreempting { vm, .. } => {
                self.vacate(vm, Some(true), out);
                self.pump(None, out);
            }
            Notice::VmLost { vm } => {
                self.vacate(vm, None, out);
                self.replace(vm, out);
            }
            Notice::TaskFinished { task, vm } => {
                if self.leave(vm, task) {
                    self.pump(Some(vm), out);
                } else if self.held.remove(&task).is_some() {
                    self.waiting.retain(|&(t, _)| t != task);
                    self.pump(None, out);
                }
            }
            Notice::TaskFailed { task, vm, .. } => self.failed(task, vm, out),
            Notice::TaskStopped { task, vm, .. } => self.release(task, vm, out),
            Notice::Wake { .. } => {
                self.retries += 1;
                self.launch_refused(out);
            }
            Notice::HostJoined => self.launch_refused(out),
            Notice::Submitted { .. }
            | Notice::Requested { .. }
            | Notice::TaskStarted { .. }
            | Notice::Checkpointed { .. }
            | Notice::Credits { .. } => {}
        }
    }
}
