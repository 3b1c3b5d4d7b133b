//! The scheduler of the rule `lazy`.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::Market;
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_units::{Bytes, Mode, Seats, Span, TaskId, Time, TypeName, VmId};

use super::last_moments::LastMoments;
use super::waiting::WaitingTasks;
use crate::problem::{KindId, Offer, SchedulingProblem};
use crate::provision::BuyingOrder;
use crate::{BagSchedulerConfig, GivenUp, Policy};

/// Token of the wake-up after which refused launches are tried again.
const RETRY: u64 = 0;

/// Token of the wake-up at the last moment at which on-demand VMs can still make the deadline.
const LAST_MOMENT: u64 = 1;

/// Runs a bag on spot VMs as long as on-demand VMs could still do the rest by the deadline.
///
/// Spot VMs are launched for waiting tasks, the cheapest type first, each up to its limit. A task whose VM hibernates continues
/// when that VM resumes, or starts again on another spot VM with a free vCPU, whichever is first. On-demand VMs are launched at two
/// last moments. For a single task, this is when it could not be done in time any more if it lost one more spot VM. For all waiting
/// tasks, it is when on-demand VMs alone are only just sure to do all remaining work. After that, on-demand VMs are used like spot
/// VMs.
///
/// Where no on-demand VM can be had, urgent tasks run on spot VMs nevertheless.
#[derive(Debug)]
pub(crate) struct LazyScheduler {
    problem: SchedulingProblem,
    order: BuyingOrder,
    moments: LastMoments,
    waiting: WaitingTasks,
    /// Number of tasks that are not submitted yet.
    to_come: usize,
    vms: BTreeMap<VmId, LazyVm>,
    /// Waiting tasks that are still on a VM that hibernated while it ran them, each with that VM.
    frozen: BTreeMap<TaskId, VmId>,
    /// Tasks that are being stopped with a checkpoint because their VM will be preempted, each with that VM.
    leaving: BTreeMap<TaskId, VmId>,
    /// True once the last moment for all tasks has passed.
    is_late: bool,
    /// Time of the pending wake-up at a last moment; `None` if there is none.
    wakes_at: Option<Time>,
    next_vm: VmId,
    failures: BTreeMap<TaskId, u32>,
    max_failures: u32,
    /// Types whose last launch was refused.
    refused: BTreeSet<Offer>,
    /// True if a wake-up is pending after which the refused types are tried again.
    is_retry_pending: bool,
    retry_after: Span,
    retries: u32,
    max_retries: u32,
}

/// Whether a VM accepts tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Booting,
    Ready,
    /// The VM hibernates, or will be preempted soon.
    Away,
}

/// A launched VM and the tasks on it.
#[derive(Debug)]
struct LazyVm {
    kind: KindId,
    market: Market,
    readiness: Readiness,
    tasks: Vec<TaskId>,
    memory: Bytes,
}

impl LazyScheduler {
    pub(crate) fn new(config: &BagSchedulerConfig, problem: SchedulingProblem) -> Self {
        let order = BuyingOrder::new(&problem);
        let moments = LastMoments::new(&problem, &order);
        let mut waiting = WaitingTasks::default();
        for &task in problem.by_length().iter().filter(|&&task| problem.is_due_at_once(task)) {
            waiting.add_task(&moments, task, StartReason::Planned);
        }
        Self {
            to_come: problem.to_come(),
            problem,
            order,
            moments,
            waiting,
            vms: BTreeMap::new(),
            frozen: BTreeMap::new(),
            leaving: BTreeMap::new(),
            is_late: false,
            wakes_at: None,
            next_vm: VmId::new(0),
            failures: BTreeMap::new(),
            max_failures: config.max_failures,
            refused: BTreeSet::new(),
            is_retry_pending: false,
            retry_after: config.retry_after,
            retries: 0,
            max_retries: config.max_retries,
        }
    }

    /// Starts the tasks that may start, launches missing VMs, terminates idle ones, and requests a wake-up at the next
    /// last moment.
    fn settle(&mut self, now: Time, out: &mut Vec<Decision>) {
        self.is_late |= self.moments.last_moment_for_all().is_some_and(|last| last <= now);
        self.start_on_demand(now, out);
        self.start_on_spot(now, 0, out);
        let served = self.buy_on_demand(now, out);
        let unserved = self.waiting.urgent(now).count().saturating_sub(served);
        self.start_on_spot(now, unserved, out);
        self.buy_spot(now, served, out);
        self.end_idle(now, out);
        self.ask_for_wake(now, out);
    }

    /// Starts the tasks that need on-demand VMs on on-demand VMs with a free vCPU.
    fn start_on_demand(&mut self, now: Time, out: &mut Vec<Decision>) {
        for vm in self.ready_vms(Market::OnDemand) {
            loop {
                let fits = |task: &TaskId| self.has_room(vm, *task);
                let next = match self.is_late {
                    true => self.waiting.all().find(fits),
                    false => self.waiting.urgent(now).find(fits),
                };
                let Some(task) = next else { break };
                self.start_task(vm, task, out);
            }
        }
    }

    /// Starts tasks on spot VMs with a free vCPU: the first `unserved` urgent tasks, and the tasks that may still start
    /// on spot VMs.
    fn start_on_spot(&mut self, now: Time, unserved: usize, out: &mut Vec<Decision>) {
        let mut left = unserved;
        for vm in self.ready_vms(Market::Spot) {
            loop {
                // A task runs on where its VM has resumed.
                let runs = |task: &TaskId| {
                    let on = self.frozen.get(task).and_then(|vm| self.vms.get(vm));
                    on.is_some_and(|vm| vm.readiness == Readiness::Ready)
                };
                let fits = |task: &TaskId| self.has_room(vm, *task) && !runs(task);
                let urgent = self.waiting.urgent(now).take(left).find(fits);
                left -= usize::from(urgent.is_some());
                let Some(task) = urgent.or_else(|| self.waiting.patient(now).find(fits)) else {
                    break;
                };
                self.start_task(vm, task, out);
            }
        }
    }

    /// The VMs of a market that accept tasks and have a free vCPU.
    fn ready_vms(&self, market: Market) -> Vec<VmId> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let has_vcpu = |vm: &LazyVm| vm.tasks.len() < self.problem.kinds[vm.kind].vcpus;
        let ready = self.vms.iter().filter(|(_, vm)| {
            vm.market == market && vm.readiness == Readiness::Ready && has_vcpu(vm)
        });
        ready.map(|(&vm, _)| vm).collect()
    }

    fn has_room(&self, vm: VmId, task: TaskId) -> bool {
        self.vms.get(&vm).is_some_and(|vm| {
            let kind = &self.problem.kinds[vm.kind];
            vm.tasks.len() < kind.vcpus
                && vm.memory + self.problem.task_memory(task) <= kind.memory
                && self.problem.runs_on(task, vm.kind)
        })
    }

    /// Starts a waiting task on `vm`. If the task is still on a hibernated VM, it is stopped there first.
    fn start_task(&mut self, vm: VmId, task: TaskId, out: &mut Vec<Decision>) {
        let Some(reason) = self.waiting.remove_task(&self.moments, task) else { return };
        if let Some(on) = self.frozen.remove(&task) {
            self.remove_from_vm(on, task);
            out.push(Decision::Stop { task, vm: on, keep: false });
        }
        let memory = self.problem.task_memory(task);
        let Some(state) = self.vms.get_mut(&vm) else { return };
        state.tasks.push(task);
        state.memory = state.memory + memory;
        let on = Seats::first_free(vm);
        out.push(Decision::Start { task, on, mode: Mode::Burst, reason });
    }

    /// Removes a task from a VM; returns false if the task was not on it.
    fn remove_from_vm(&mut self, vm: VmId, task: TaskId) -> bool {
        let Some(state) = self.vms.get_mut(&vm) else { return false };
        let Some(at) = state.tasks.iter().position(|&other| other == task) else { return false };
        state.tasks.swap_remove(at);
        state.memory = state.memory.saturating_sub(self.problem.task_memory(task));
        true
    }

    /// Number of vCPUs of a market's VMs that are booting.
    fn booting_vcpus(&self, market: Market) -> usize {
        let booting = self
            .vms
            .values()
            .filter(|vm| vm.market == market && vm.readiness == Readiness::Booting);
        booting.map(|vm| self.problem.kinds[vm.kind].vcpus).sum()
    }

    /// Launches on-demand VMs for the tasks that need them; returns for how many of these tasks the booting VMs have
    /// vCPUs.
    fn buy_on_demand(&mut self, now: Time, out: &mut Vec<Decision>) -> usize {
        let urgent = self.waiting.urgent(now).count();
        let mut wanted = urgent;
        if self.is_late {
            let on_spot = self.booting_vcpus(Market::Spot);
            wanted = wanted.max(self.waiting.len().saturating_sub(on_spot));
        }
        let missing = wanted.saturating_sub(self.booting_vcpus(Market::OnDemand));
        self.buy(Market::OnDemand, missing, out);
        self.booting_vcpus(Market::OnDemand)
    }

    /// Launches spot VMs for the waiting tasks that no booting on-demand VM will run.
    fn buy_spot(&mut self, now: Time, served: usize, out: &mut Vec<Decision>) {
        let for_on_demand = match self.is_late {
            true => self.waiting.len(),
            false => self.waiting.urgent(now).count(),
        };
        let wanted = self.waiting.len() - served.min(for_on_demand);
        let missing = wanted.saturating_sub(self.booting_vcpus(Market::Spot));
        self.buy(Market::Spot, missing, out);
    }

    /// Launches VMs with at least `vcpus` vCPUs in total, if enough are available: the cheapest type first, each up to
    /// its limit.
    fn buy(&mut self, market: Market, vcpus: usize, out: &mut Vec<Decision>) {
        let (sold, kinds) = self.order.types_to_buy(market);
        if sold != market || vcpus == 0 {
            return;
        }
        let mut new: Vec<KindId> = Vec::new();
        let mut found = 0;
        for &kind in kinds.iter().filter(|&&kind| !self.refused.contains(&(kind, market))) {
            let is_like = |vm: &&LazyVm| vm.kind == kind && vm.market == market;
            let used = self.vms.values().filter(is_like).count();
            let limit = self.problem.kinds[kind].limit(market) as usize;
            for _ in used..limit {
                if found < vcpus {
                    found += self.problem.kinds[kind].vcpus;
                    new.push(kind);
                }
            }
        }
        for kind in new {
            let vm = self.next_vm;
            self.next_vm = vm.next();
            let (readiness, tasks, memory) = (Readiness::Booting, Vec::new(), Bytes::ZERO);
            self.vms.insert(vm, LazyVm { kind, market, readiness, tasks, memory });
            let kind = self.problem.kinds[kind].name.clone();
            out.push(Decision::Launch { vm, kind, market, bid: None });
        }
    }

    /// Terminates the VMs without tasks on which no waiting task may start.
    fn end_idle(&mut self, now: Time, out: &mut Vec<Decision>) {
        if self.to_come > 0 {
            return;
        }
        let is_wanted = |market: Market| match market {
            Market::OnDemand if !self.is_late => self.waiting.urgent(now).next().is_some(),
            Market::Spot | Market::OnDemand => !self.waiting.is_empty(),
        };
        let wanted = [Market::Spot, Market::OnDemand].map(|market| (market, is_wanted(market)));
        let is_idle = |vm: &LazyVm| vm.tasks.is_empty() && wanted.contains(&(vm.market, false));
        let idle: Vec<VmId> =
            self.vms.iter().filter(|(_, vm)| is_idle(vm)).map(|(&vm, _)| vm).collect();
        for vm in idle.into_iter().filter(|vm| !self.leaving.values().any(|on| on == vm)) {
            self.vms.remove(&vm);
            out.push(Decision::Terminate { vm, reason: None });
        }
    }

    /// Requests a wake-up for when the next waiting task becomes urgent, or for the last moment for all tasks.
    fn ask_for_wake(&mut self, now: Time, out: &mut Vec<Decision>) {
        let for_all = self.moments.last_moment_for_all().filter(|_| !self.is_late);
        let is_sold = self.order.types_to_buy(Market::OnDemand).0 == Market::OnDemand;
        let urgent = self.waiting.next_urgent(now).filter(|_| is_sold);
        let Some(at) = Time::sooner_of(for_all, urgent) else { return };
        if at > now && self.wakes_at.is_none_or(|pending| at < pending || pending <= now) {
            self.wakes_at = Some(at);
            out.push(Decision::Wake { at, token: LAST_MOMENT });
        }
    }

    /// Adds a task to the waiting tasks.
    fn add_waiting(&mut self, task: TaskId, reason: StartReason) {
        self.waiting.add_task(&self.moments, task, reason);
    }

    /// Handles that a VM has hibernated: its tasks wait for its resume, or for a different VM.
    fn on_hibernated(&mut self, vm: VmId) {
        let Some(state) = self.vms.get_mut(&vm) else { return };
        state.readiness = Readiness::Away;
        for task in state.tasks.clone() {
            self.frozen.insert(task, vm);
            self.add_waiting(task, StartReason::Migrated);
        }
    }

    /// Handles that a VM has resumed: its tasks continue; urgent ones still wait for an on-demand VM.
    fn on_resumed(&mut self, now: Time, vm: VmId) {
        let Some(state) = self.vms.get_mut(&vm) else { return };
        state.readiness = Readiness::Ready;
        for task in state.tasks.clone() {
            if self.moments.last_spot_start(task) > now {
                self.waiting.remove_task(&self.moments, task);
                self.frozen.remove(&task);
            }
        }
    }

    /// Handles that a VM will be preempted: its tasks are stopped with a checkpoint.
    fn on_preempting(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.get_mut(&vm) else { return };
        state.readiness = Readiness::Away;
        for task in state.tasks.clone() {
            self.remove_from_vm(vm, task);
            self.frozen.remove(&task);
            self.waiting.remove_task(&self.moments, task);
            self.leaving.insert(task, vm);
            out.push(Decision::Stop { task, vm, keep: true });
        }
    }

    fn on_lost(&mut self, vm: VmId) {
        let Some(state) = self.vms.remove(&vm) else { return };
        let leaving: Vec<TaskId> =
            self.leaving.iter().filter(|(_, on)| **on == vm).map(|(&task, _)| task).collect();
        self.leaving.retain(|_, on| *on != vm);
        for task in state.tasks.into_iter().chain(leaving) {
            self.frozen.remove(&task);
            self.add_waiting(task, StartReason::Migrated);
        }
    }

    /// Handles the end of a task that was stopped with a checkpoint; returns false if the task was not being stopped.
    fn on_left(&mut self, task: TaskId, vm: VmId) -> bool {
        let has_left = self.leaving.get(&task) == Some(&vm);
        if has_left {
            self.leaving.remove(&task);
            self.add_waiting(task, StartReason::Migrated);
        }
        has_left
    }

    fn on_finished(&mut self, task: TaskId, vm: VmId) {
        let was_there = self.remove_from_vm(vm, task);
        let was_leaving = self.leaving.get(&task) == Some(&vm);
        if was_there || was_leaving {
            self.leaving.remove(&task);
            self.frozen.remove(&task);
            self.waiting.remove_task(&self.moments, task);
            self.moments.remove_task(task);
        }
    }

    fn on_failed(&mut self, task: TaskId, vm: VmId) {
        if self.on_left(task, vm) || !self.remove_from_vm(vm, task) {
            return;
        }
        self.frozen.remove(&task);
        let failures = self.failures.entry(task).or_default();
        *failures += 1;
        if *failures < self.max_failures {
            self.add_waiting(task, StartReason::Retried);
        } else {
            self.waiting.remove_task(&self.moments, task);
            self.moments.remove_task(task);
        }
    }

    /// Handles a refused launch: the type is not tried again until a wake-up, or until it is available again.
    fn on_refused(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(LazyVm { kind, market, .. }) = self.vms.remove(&vm) else { return };
        self.refused.insert((kind, market));
        if !self.is_retry_pending && self.retries < self.max_retries {
            self.is_retry_pending = true;
            let at = now + self.retry_after.times(1 << self.retries.min(32));
            out.push(Decision::Wake { at, token: RETRY });
        }
    }

    fn on_woken(&mut self, now: Time, token: u64) {
        match token {
            RETRY => {
                self.retries += 1;
                self.is_retry_pending = false;
                self.refused.clear();
            }
            _ if self.wakes_at.is_some_and(|at| at <= now) => self.wakes_at = None,
            _ => {}
        }
    }

    fn on_available(&mut self, name: &TypeName) {
        self.refused.retain(|&(kind, _)| self.problem.kinds[kind].name != *name);
    }

    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => {}
            Notice::VmReady { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    state.readiness = Readiness::Ready;
                    self.retries = 0;
                }
            }
            Notice::VmResumed { vm } => self.on_resumed(now, vm),
            Notice::LaunchRefused { vm, .. } => self.on_refused(now, vm, out),
            Notice::VmHibernating { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    state.readiness = Readiness::Away;
                }
            }
            Notice::VmHibernated { vm } => self.on_hibernated(vm),
            Notice::VmPreempting { vm, .. } => self.on_preempting(vm, out),
            Notice::VmLost { vm } => self.on_lost(vm),
            Notice::TaskDue { task } => {
                self.to_come = self.to_come.saturating_sub(1);
                self.add_waiting(task, StartReason::Due);
            }
            Notice::TaskFinished { task, vm } => self.on_finished(task, vm),
            Notice::TaskFailed { task, vm, .. } => self.on_failed(task, vm),
            Notice::TaskStopped { task, vm, .. } => {
                self.on_left(task, vm);
            }
            Notice::Wake { token } => self.on_woken(now, token),
            Notice::HostJoined => self.refused.clear(),
            Notice::Available { ref kind } => self.on_available(kind),
            Notice::Price { .. }
            | Notice::Submitted { .. }
            | Notice::Requested { .. }
            | Notice::VmRebalance { .. }
            | Notice::TaskStarted { .. }
            | Notice::Checkpointed { .. }
            | Notice::Credits { .. }
            | Notice::Rejected { .. } => return,
        }
        self.settle(now, out);
    }
}

impl Policy for LazyScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        if self.failures.values().any(|failures| *failures >= self.max_failures) {
            return Some(GivenUp::Work);
        }
        let waits_in_vain = !self.waiting.is_empty() && !self.refused.is_empty();
        (waits_in_vain && !self.is_retry_pending).then_some(GivenUp::Launches)
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
    }
}
