//! Scheduling without a plan: tasks run in a fixed order, on the VMs of a list or on VMs that a buying rule
//! selects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dormouse_cloud::Market;
use dormouse_model::{Decision, EndReason, Notice, StartReason};
use dormouse_units::{Bytes, Mode, Price, Seats, Span, TaskId, Time, TypeName, VmId};

use crate::heard_prices::HeardPrices;
use crate::problem::{KindId, SchedulingProblem};
use crate::provision::BuyingOrder;
use crate::{BagSchedulerConfig, GivenUp, Policy};

/// The side that terminates a spot VM whose price exceeds its bid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhoEnds {
    /// The provider ends the VM; it knows the bid.
    Provider,
    /// The scheduler that launched the VM ends it; the provider knows no bid.
    User,
}

/// Launches its fleet at the beginning and starts the next task of the bag wherever a vCPU and enough
/// memory are free. Tasks of a lost, preempted or hibernated VM return to the head of the queue, and a
/// similar VM is launched; the scheduler does not wait for a resume. An idle VM is terminated when no task
/// is left to start. A refused launch is tried again later, each time after twice the wait. A spot VM whose
/// price is known to be above its bid is requested once the price is within the bid. Tasks that come due
/// during the run go to the end of the queue, and VMs are kept for them.
///
/// A notice costs constant time, however many tasks there are, as long as memory doesn't bind.
#[derive(Debug)]
pub(crate) struct InOrder {
    problem: SchedulingProblem,
    fleet: Vec<WantedVm>,
    waiting: VecDeque<(TaskId, StartReason)>,
    /// Number of tasks that are not ready to start yet.
    to_come: usize,
    vms: BTreeMap<VmId, FleetMember>,
    /// The ready VMs with a free vCPU.
    with_room: BTreeSet<VmId>,
    /// VMs whose launch was refused, to be launched again.
    refused: Vec<WantedVm>,
    /// VMs to be launched once their price is within their bid.
    too_dear: Vec<WantedVm>,
    prices: HeardPrices,
    who_ends: WhoEnds,
    /// Order of types by which VMs are added if the experiment lists none; `None`: only the listed VMs are launched.
    provision: Option<BuyingOrder>,
    failures: BTreeMap<TaskId, u32>,
    /// Tasks that are being stopped with a checkpoint, each with its VM, which will be given back.
    held: BTreeMap<TaskId, VmId>,
    max_failures: u32,
    next_vm: VmId,
    retry_after: Span,
    retries: u32,
    max_retries: u32,
}

/// A VM of the fleet: its type, its market, and the most to be paid for it.
#[derive(Clone, Copy, Debug)]
struct WantedVm {
    kind: KindId,
    market: Market,
    bid: Option<Price>,
}

/// A launched VM, with the tasks on it.
#[derive(Debug)]
struct FleetMember {
    wanted: WantedVm,
    ready: bool,
    /// True if the VM has not booted yet, so that its vCPUs are still to come.
    booting: bool,
    /// True if the provider will preempt this VM or has frozen it, and on-demand VMs were already launched in its place.
    replaced: bool,
    running: Vec<TaskId>,
    memory: Bytes,
}

impl InOrder {
    pub(crate) fn new(
        config: &BagSchedulerConfig,
        problem: SchedulingProblem,
        who_ends: WhoEnds,
    ) -> Self {
        let kind_of = |name: &TypeName| problem.kinds.iter().position(|k| k.name == *name);
        let fleet = config.fleet.iter().flat_map(|f| {
            let wanted =
                kind_of(&f.kind).map(|kind| WantedVm { kind, market: f.market, bid: f.bid });
            std::iter::repeat_n(wanted, f.count as usize).flatten()
        });
        Self {
            fleet: fleet.collect(),
            waiting: (0_u32..)
                .take(problem.task_count())
                .map(TaskId::new)
                .filter(|&task| problem.is_due_at_once(task))
                .map(|task| (task, StartReason::Planned))
                .collect(),
            to_come: problem.to_come(),
            problem,
            vms: BTreeMap::new(),
            with_room: BTreeSet::new(),
            refused: Vec::new(),
            too_dear: Vec::new(),
            prices: HeardPrices::default(),
            who_ends,
            provision: None,
            failures: BTreeMap::new(),
            held: BTreeMap::new(),
            max_failures: config.max_failures,
            next_vm: VmId::new(0),
            retry_after: config.retry_after,
            retries: 0,
            max_retries: config.max_retries,
        }
    }

    /// Makes the scheduler without a fleet in its configuration: it starts the longest task first, on VMs that
    /// [`BuyingOrder`] finds.
    pub(crate) fn longest_first(config: &BagSchedulerConfig, problem: SchedulingProblem) -> Self {
        let provision = Some(BuyingOrder::new(&problem));
        let due = problem.by_length().iter().filter(|&&task| problem.is_due_at_once(task));
        let waiting = due.map(|&task| (task, StartReason::Planned)).collect();
        let no_fleet = BagSchedulerConfig { fleet: Vec::new(), ..config.clone() };
        Self { waiting, provision, ..Self::new(&no_fleet, problem, WhoEnds::Provider) }
    }

    /// Launches a VM now, or as soon as its price is within its bid.
    fn launch(&mut self, wanted: WantedVm, out: &mut Vec<Decision>) {
        if self.is_too_dear(wanted) {
            return self.too_dear.push(wanted);
        }
        let vm = self.next_vm;
        self.next_vm = vm.next();
        let (running, memory) = (Vec::new(), Bytes::ZERO);
        let new =
            FleetMember { wanted, ready: false, booting: true, replaced: false, running, memory };
        self.vms.insert(vm, new);
        let WantedVm { kind, market, bid } = wanted;
        let bid = bid.filter(|_| self.who_ends == WhoEnds::Provider);
        let kind = self.problem.kinds[kind].name.clone();
        out.push(Decision::Launch { vm, kind, market, bid });
    }

    /// True if the VM to be launched is known to cost more than its bid.
    fn is_too_dear(&self, wanted: WantedVm) -> bool {
        let price = self.prices.last_price(wanted.kind).filter(|_| wanted.market == Market::Spot);
        price.zip(wanted.bid).is_some_and(|(price, bid)| price > bid)
    }

    /// Handles a change of a type's price: if tasks are left to start, launches the VMs whose price has
    /// come down to their bid.
    fn on_price(&mut self, now: Time, kind: &TypeName, price: Price, out: &mut Vec<Decision>) {
        let Some(kind) = self.problem.kinds.iter().position(|k| k.name == *kind) else { return };
        self.prices.add_price(now, kind, price);
        // Where no task is left to start, they stay in the list: a VM may yet be lost.
        if self.has_more() {
            for wanted in std::mem::take(&mut self.too_dear) {
                self.launch(wanted, out);
            }
        }
    }

    /// True if tasks are left to start, now or once they are submitted.
    fn has_more(&self) -> bool {
        !self.waiting.is_empty() || self.to_come > 0
    }

    /// Adds a task that has become ready to start to the waiting tasks.
    fn on_task_due(&mut self, task: TaskId, out: &mut Vec<Decision>) {
        self.to_come = self.to_come.saturating_sub(1);
        self.waiting.push_back((task, StartReason::Due));
        if self.provision.is_some() {
            self.sort_waiting();
        }
        self.start_waiting(None, out);
        self.add(Market::Spot, usize::MAX, out);
    }

    /// Sorts the waiting tasks: tasks that lost their VMs stay first, and the others follow, the longest
    /// first.
    fn sort_waiting(&mut self) {
        let Self { waiting, problem, .. } = self;
        waiting.make_contiguous().sort_by_key(|&(task, reason)| {
            let is_fresh = matches!(reason, StartReason::Planned | StartReason::Due);
            (
                is_fresh,
                std::cmp::Reverse(if is_fresh { problem.longest_time(task) } else { Span::ZERO }),
            )
        });
    }

    /// Launches VMs for the waiting tasks, with at most `most_vcpus` vCPUs: in this market if possible, the
    /// cheapest types first, each up to its limit. Booting VMs count as capacity. Returns true if a VM was
    /// launched or none was needed.
    fn add(&mut self, market: Market, most_vcpus: usize, out: &mut Vec<Decision>) -> bool {
        let Some(provision) = &self.provision else { return false };
        let vcpus = |wanted: WantedVm| self.problem.kinds[wanted.kind].vcpus;
        let booting = self.vms.values().filter(|vm| vm.booting).map(|vm| vcpus(vm.wanted));
        let needed = self.waiting.len().saturating_sub(booting.sum()).min(most_vcpus);
        let mut count: BTreeMap<(KindId, Market), u32> = BTreeMap::new();
        for FleetMember { wanted, .. } in self.vms.values() {
            *count.entry((wanted.kind, wanted.market)).or_default() += 1;
        }
        let (mut found, mut new) = (0, Vec::new());
        let (market, kinds) = provision.types_to_buy(market);
        for &kind in kinds {
            let limit = self.problem.kinds[kind].limit(market);
            let used = count.get(&(kind, market)).copied().unwrap_or(0);
            for _ in used..limit {
                if found >= needed {
                    break;
                }
                let wanted = WantedVm { kind, market, bid: None };
                found += vcpus(wanted);
                new.push(wanted);
            }
        }
        for &wanted in &new {
            self.launch(wanted, out);
        }
        needed == 0 || !new.is_empty()
    }

    /// Launches on-demand VMs for the tasks on a VM that the provider preempts or freezes, and for waiting tasks that would have
    /// run on that VM.
    fn stand_in(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        self.start_waiting(None, out);
        let Some(state) = self.vms.get_mut(&vm) else { return };
        if !std::mem::replace(&mut state.replaced, true) {
            state.booting = false;
            let vcpus = self.problem.kinds[state.wanted.kind].vcpus;
            self.add(Market::OnDemand, vcpus, out);
        }
    }

    /// Handles a VM that is frozen. A scheduler with a fleet gives the VM back and launches another. A
    /// scheduler without a fleet runs the VM's tasks elsewhere at once, and keeps the VM, which may resume,
    /// while tasks wait.
    fn on_vm_hibernated(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        if !self.vms.contains_key(&vm) {
            return;
        }
        self.vacate_vm(vm, Some(false), out);
        if self.provision.is_some() {
            return self.stand_in(vm, out);
        }
        out.push(Decision::Terminate { vm, reason: None });
        self.replace_vm(vm, out);
    }

    fn task_fits(&self, vm: VmId, task: TaskId) -> bool {
        self.vms.get(&vm).is_some_and(|state| {
            let memory = state.memory + self.problem.task_memory(task);
            self.problem.runs_on(task, state.wanted.kind)
                && memory <= self.problem.kinds[state.wanted.kind].memory
        })
    }

    /// Starts the next tasks as long as there is room, then terminates idle VMs.
    fn start_waiting(&mut self, touched: Option<VmId>, out: &mut Vec<Decision>) {
        while let Some(&(task, reason)) = self.waiting.front() {
            if self.held.contains_key(&task) {
                break;
            }
            let Some(&vm) = self.with_room.iter().find(|&&vm| self.task_fits(vm, task)) else {
                break;
            };
            self.waiting.pop_front();
            let memory = self.problem.task_memory(task);
            let Some(state) = self.vms.get_mut(&vm) else { break };
            state.running.push(task);
            state.memory = state.memory + memory;
            if state.running.len() >= self.problem.kinds[state.wanted.kind].vcpus {
                self.with_room.remove(&vm);
            }
            let on = Seats::first_free(vm);
            out.push(Decision::Start { task, on, mode: Mode::Burst, reason });
            if !self.has_more() {
                // No task is left to start: from now on only VMs that finish are looked at.
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
        if idle && !self.has_more() {
            self.vms.remove(&vm);
            self.with_room.remove(&vm);
            out.push(Decision::Terminate { vm, reason: None });
        }
    }

    /// Removes a task from this VM; returns false if the task wasn't on it.
    fn remove_task(&mut self, vm: VmId, task: TaskId) -> bool {
        let Some(state) = self.vms.get_mut(&vm) else { return false };
        let Some(at) = state.running.iter().position(|&t| t == task) else { return false };
        state.running.swap_remove(at);
        state.memory = state.memory.saturating_sub(self.problem.task_memory(task));
        if state.ready {
            self.with_room.insert(vm);
        }
        true
    }

    /// Removes all tasks from a VM and puts them at the head of the queue. `stop` is `None` if the attempts
    /// have ended already; else they are stopped, after a checkpoint if `stop` is true.
    fn vacate_vm(&mut self, vm: VmId, stop: Option<bool>, out: &mut Vec<Decision>) {
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

    /// Replaces a VM that is gone, if tasks wait: by a similar VM, or by VMs that [`BuyingOrder`] selects.
    fn replace_vm(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.remove(&vm) else { return };
        self.held.retain(|_, on| *on != vm);
        if self.has_more() && self.provision.is_none() {
            self.launch(state.wanted, out);
        }
        self.start_waiting(None, out);
        if !state.replaced {
            let vcpus = self.problem.kinds[state.wanted.kind].vcpus;
            self.add(Market::OnDemand, vcpus, out);
        }
    }

    fn release_task(&mut self, task: TaskId, vm: VmId, out: &mut Vec<Decision>) {
        if self.held.get(&task) == Some(&vm) {
            self.held.remove(&task);
            self.start_waiting(None, out);
        }
    }

    fn on_launch_refused(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(state) = self.vms.remove(&vm) else { return };
        if self.is_too_dear(state.wanted) {
            return self.too_dear.push(state.wanted);
        }
        let vcpus = self.problem.kinds[state.wanted.kind].vcpus;
        // Where nothing is sold on demand, the same would be asked for, and refused, again and again.
        let sells = |provision: &BuyingOrder| {
            provision.types_to_buy(Market::OnDemand).0 == Market::OnDemand
        };
        let has_other = state.wanted.market == Market::Spot;
        let has_other = has_other && self.provision.as_ref().is_some_and(sells);
        if has_other && self.add(Market::OnDemand, vcpus, out) {
            return;
        }
        if self.refused.is_empty() && self.retries < self.max_retries {
            let at = now + self.retry_after.times(1 << self.retries.min(32));
            out.push(Decision::Wake { at, token: 0 });
        }
        self.refused.push(state.wanted);
    }

    fn on_task_failed(&mut self, task: TaskId, vm: VmId, out: &mut Vec<Decision>) {
        if self.held.get(&task) == Some(&vm) {
            return self.release_task(task, vm, out);
        }
        if !self.remove_task(vm, task) {
            return;
        }
        let failures = self.failures.entry(task).or_default();
        *failures += 1;
        if *failures < self.max_failures {
            self.waiting.push_front((task, StartReason::Retried));
        }
        self.start_waiting(Some(vm), out);
    }
}

impl InOrder {
    /// Terminates a VM early: its tasks return to the head of the queue, and if any wait, a similar VM is
    /// launched.
    pub(crate) fn give_back(&mut self, vm: VmId, reason: EndReason, out: &mut Vec<Decision>) {
        self.vacate_vm(vm, Some(false), out);
        out.push(Decision::Terminate { vm, reason: Some(reason) });
        self.replace_vm(vm, out);
    }

    /// Makes a VM take no more tasks.
    pub(crate) fn close_vm(&mut self, vm: VmId) {
        if let Some(state) = self.vms.get_mut(&vm) {
            state.ready = false;
            self.with_room.remove(&vm);
        }
    }

    /// Price and bid of a VM that costs more than its bid; `None` if the VM costs no more, or is gone.
    pub(crate) fn above_bid(&self, vm: VmId) -> Option<(Price, Price)> {
        let wanted = self.vms.get(&vm)?.wanted;
        let (price, bid) = (self.prices.last_price(wanted.kind)?, wanted.bid?);
        self.is_too_dear(wanted).then_some((price, bid))
    }

    /// True if a VM was launched and is not gone.
    pub(crate) fn has_vm(&self, vm: VmId) -> bool {
        self.vms.contains_key(&vm)
    }

    /// The tasks on a VM, each with the time that its checkpoint takes.
    pub(crate) fn tasks_on(&self, vm: VmId) -> impl Iterator<Item = (TaskId, Span)> {
        let state = self.vms.get(&vm);
        state.into_iter().flat_map(|state| {
            let takes = |task: TaskId| self.problem.checkpoint_time(task, state.wanted.kind);
            state.running.iter().map(move |&task| (task, takes(task)))
        })
    }

    /// Price of a VM's type at a time; `None`: the scheduler knows none.
    pub(crate) fn price_at(&self, vm: VmId, at: Time) -> Option<Price> {
        self.prices.price_at(self.vms.get(&vm)?.wanted.kind, at)
    }

    /// Launches again the VMs whose launch was refused.
    fn launch_refused(&mut self, out: &mut Vec<Decision>) {
        for wanted in std::mem::take(&mut self.refused) {
            if self.has_more() {
                self.launch(wanted, out);
            }
        }
    }
}

impl Policy for InOrder {
    fn given_up(&self) -> Option<GivenUp> {
        let is_given_up = |failures: &u32| *failures >= self.max_failures;
        if self.failures.values().any(is_given_up) {
            return Some(GivenUp::Work);
        }
        let is_refused = !self.refused.is_empty() && self.has_more();
        (is_refused && self.retries >= self.max_retries).then_some(GivenUp::Launches)
    }

    fn waits_for_price(&self) -> bool {
        !self.too_dear.is_empty() && self.has_more()
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
    }
}

impl InOrder {
    pub(crate) fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Price { ref kind, price } => self.on_price(now, kind, price, out),
            Notice::Begin => {
                if self.has_more() {
                    for wanted in std::mem::take(&mut self.fleet) {
                        self.launch(wanted, out);
                    }
                    self.add(Market::Spot, usize::MAX, out);
                }
            }
            Notice::VmReady { vm } | Notice::VmResumed { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    (state.ready, state.booting, state.replaced) = (true, false, false);
                    self.retries = 0;
                    self.with_room.insert(vm);
                    self.start_waiting(Some(vm), out);
                }
            }
            Notice::LaunchRefused { vm, .. } => self.on_launch_refused(now, vm, out),
            Notice::VmHibernating { vm } => {
                if let Some(state) = self.vms.get_mut(&vm) {
                    state.ready = false;
                    self.with_room.remove(&vm);
                }
            }
            Notice::VmHibernated { vm } => self.on_vm_hibernated(vm, out),
            Notice::VmPreempting { vm, .. } => {
                self.vacate_vm(vm, Some(true), out);
                if self.provision.is_some() {
                    self.stand_in(vm, out);
                } else {
                    self.start_waiting(None, out);
                }
            }
            Notice::VmLost { vm } => {
                self.vacate_vm(vm, None, out);
                self.replace_vm(vm, out);
            }
            Notice::TaskDue { task } => self.on_task_due(task, out),
            Notice::TaskFinished { task, vm } => {
                if self.remove_task(vm, task) {
                    self.start_waiting(Some(vm), out);
                } else if self.held.remove(&task).is_some() {
                    self.waiting.retain(|&(t, _)| t != task);
                    self.start_waiting(None, out);
                }
            }
            Notice::TaskFailed { task, vm, .. } => self.on_task_failed(task, vm, out),
            Notice::TaskStopped { task, vm, .. } => self.release_task(task, vm, out),
            Notice::Wake { .. } => {
                self.retries += 1;
                self.launch_refused(out);
            }
            Notice::HostJoined | Notice::Available { .. } => self.launch_refused(out),
            Notice::Submitted { .. }
            | Notice::Requested { .. }
            | Notice::VmRebalance { .. }
            | Notice::TaskStarted { .. }
            | Notice::Checkpointed { .. }
            | Notice::Credits { .. }
            | Notice::Rejected { .. } => {}
        }
    }
}
