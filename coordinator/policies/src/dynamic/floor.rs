//! The scheduler's books: its VMs, the tasks on them, and the decisions that change either.

use std::collections::BTreeSet;
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_model::{Decision, StartReason};
use dormouse_units::{ById, Bytes, Credits, Ppm, Span, TaskId, Time, VmId};

use super::machine::{Machine, Phase, Queued, Running, needed, speed};
use super::token::Purpose;
use crate::packing::Packing;
use crate::problem::{Kind, KindId, Offer, Problem};
use crate::{BurstOn, SpareTime};
use dormouse_units::{Mode, Seats};

/// One call of the scheduler: the time, and where decisions go.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) now: Time,
    pub(crate) out: &'a mut Vec<Decision>,
}

impl Turn<'_> {
    pub(crate) fn wake(&mut self, at: Time, purpose: Purpose) {
        self.out.push(Decision::Wake { at, token: purpose.token() });
    }
}

/// The scheduler's knowledge of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Part of the work that the task's last checkpoint keeps.
    pub(crate) done: Ppm,
    pub(crate) failures: u32,
    /// Whether the task is finished or given up.
    pub(crate) settled: bool,
    /// Whether the task has to wait until others are done.
    pub(crate) waits: bool,
    /// The VM in whose queue or on whose vCPU the task is.
    pub(crate) on: Option<VmId>,
    /// The VM on which an attempt is still being stopped; no other attempt may start before.
    pub(crate) held: Option<VmId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Floor {
    /// The problem, shared by all copies of the books on which decisions are tried out.
    pub(crate) problem: Arc<Problem>,
    pub(crate) burst_on: BurstOn,
    pub(crate) spare_time: SpareTime,
    pub(crate) machines: ById<VmId, Machine>,
    /// Types and markets of which a launch was refused and no VM has ended since.
    pub(crate) refused: BTreeSet<(KindId, Market)>,
    tasks: Vec<Progress>,
    unsettled: usize,
    next_vm: VmId,
}

impl Floor {
    pub(crate) fn new(problem: Problem, burst_on: BurstOn, spare_time: SpareTime) -> Self {
        let n = problem.tasks();
        let progress =
            |task| Progress { waits: !problem.is_due_at_once(task), ..Progress::default() };
        let tasks = (0_u32..).take(n).map(TaskId::new).map(progress).collect();
        Self {
            problem: Arc::new(problem),
            burst_on,
            spare_time,
            machines: ById::new(),
            refused: BTreeSet::new(),
            tasks,
            unsettled: n,
            next_vm: VmId::new(0),
        }
    }

    pub(crate) fn task(&self, task: TaskId) -> Progress {
        self.tasks.get(task.get() as usize).copied().unwrap_or_default()
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> Option<&mut Progress> {
        self.tasks.get_mut(task.get() as usize)
    }

    pub(crate) fn kind(&self, machine: &Machine) -> &Kind {
        &self.problem.kinds[machine.kind]
    }

    /// The deadline D, from the beginning.
    pub(crate) fn deadline(&self) -> Time {
        Time::ZERO + self.problem.deadline
    }

    /// By when a task has to be done, so that those that follow it can be by the deadline.
    pub(crate) fn limit(&self, task: TaskId) -> Time {
        Time::ZERO + self.problem.limit(task)
    }

    /// Whether every task is finished or given up.
    pub(crate) fn all_settled(&self) -> bool {
        self.unsettled == 0
    }

    /// Marks a task as finished or given up. False if it was already.
    pub(crate) fn settle(&mut self, task: TaskId) -> bool {
        let Some(progress) = self.task_mut(task).filter(|p| !p.settled) else { return false };
        progress.settled = true;
        self.unsettled -= 1;
        true
    }

    /// Gives a task up, and with it all that follow it.
    pub(crate) fn give_up(&mut self, task: TaskId) {
        let problem = self.problem.clone();
        let mut given_up = vec![task];
        while let Some(task) = given_up.pop() {
            if self.settle(task) {
                given_up.extend(problem.followers().of_task(task));
            }
        }
    }

    /// Time that a task still takes on a type in this mode; `None` if it can't run there.
    pub(crate) fn remaining(&self, task: TaskId, on: Offer, mode: Mode) -> Option<Span> {
        let speed = speed(mode, &self.problem.kinds[on.0]);
        self.problem.remaining(task, on, self.task(task).done, speed)
    }

    /// Number of VMs of a type that may still be launched, as far as is known.
    pub(crate) fn launchable(&self, kind: KindId, market: Market) -> usize {
        if self.refused.contains(&(kind, market)) {
            return 0;
        }
        let alike = |m: &&Machine| m.kind == kind && m.market == market;
        let limit = self.problem.kinds[kind].limit(market) as usize;
        limit.saturating_sub(self.machines.values().filter(alike).count())
    }

    pub(crate) fn launch(&mut self, turn: &mut Turn<'_>, kind: KindId, market: Market) -> VmId {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        let offer = &self.problem.kinds[kind];
        let machine = Machine::new(kind, market, turn.now + self.problem.takeover_boot, offer);
        let kind = offer.name.clone();
        turn.out.push(Decision::Launch { vm, kind, market, bid: None });
        self.machines.insert(vm, machine);
        vm
    }

    /// Gives a VM back.
    pub(crate) fn terminate(&mut self, turn: &mut Turn<'_>, vm: VmId) {
        if self.machines.remove(&vm).is_some() {
            turn.out.push(Decision::Terminate { vm, reason: None });
            self.refused.clear();
        }
    }

    /// Puts a task at the end of a VM's queue.
    pub(crate) fn enqueue(&mut self, vm: VmId, queued: Queued) {
        let Some(machine) = self.machines.get_mut(&vm) else { return };
        machine.queue.push_back(queued);
        if let Some(progress) = self.task_mut(queued.task) {
            progress.on = Some(vm);
        }
    }

    /// Takes a task off a VM that is still there, from its queue or, stopping the attempt, from its
    /// vCPU. With `keep` the attempt takes a checkpoint first if that loses less time than it
    /// saves, and the task is held until the checkpoint is there.
    pub(crate) fn withdraw(&mut self, turn: &mut Turn<'_>, vm: VmId, task: TaskId, keep: bool) {
        let Some(machine) = self.machines.get_mut(&vm) else { return };
        let cost = self.problem.checkpoint(task, machine.kind);
        let unkept =
            machine.running.iter().find(|r| r.task == task).map(|r| turn.now.since(r.since));
        let keep = keep && unkept.is_some_and(|unkept| unkept > cost);
        // The task is in the queue at most once, and most often first.
        if let Some(place) = machine.queue.iter().position(|q| q.task == task) {
            machine.queue.remove(place);
        }
        let stopped = machine.clear(turn.now, task, &self.problem.kinds[machine.kind]);
        if stopped {
            turn.out.push(Decision::Stop { task, vm, keep });
            if keep {
                machine.leaving.push(task);
            }
        }
        if let Some(progress) = self.task_mut(task) {
            progress.on = None;
            progress.held = if stopped && keep { Some(vm) } else { progress.held };
        }
    }

    /// Checkpoints the tasks of a VM that will be killed before they end, while they run on: so
    /// late that there is just time for a checkpoint and for another one before it.
    pub(crate) fn checkpoint_before_end(&self, turn: &mut Turn<'_>, vm: VmId) {
        let Some(machine) = self.machines.get(&vm).filter(|m| m.phase == Phase::Leaving) else {
            return;
        };
        let Some(end) = machine.doomed else { return };
        let cut =
            machine.running.iter().map(|r| (r, self.problem.checkpoint(r.task, machine.kind)));
        // A checkpoint that can't be complete in time is not begun.
        let cut: Vec<_> = cut.filter(|(r, cost)| r.ends > end && turn.now + *cost < end).collect();
        let Some(longest) = cut.iter().map(|(_, cost)| *cost).max() else { return };
        let last = Time::from_micros(end.as_micros().saturating_sub(longest.times(2).as_micros()));
        if turn.now < last {
            return turn.wake(last, Purpose::LastCheckpoint(vm));
        }
        turn.out.extend(cut.iter().map(|(r, _)| Decision::Checkpoint { task: r.task, vm }));
    }

    /// Starts the tasks that can start on a VM: those of its queue in order, one per free vCPU, as
    /// long as there is memory for the next. A task that is held elsewhere, or waits for others to be
    /// done, lets others pass.
    pub(crate) fn dispatch(&mut self, turn: &mut Turn<'_>, vm: VmId) {
        while let Some((index, ends)) = self.next_to_start(turn.now, vm) {
            let Some(machine) = self.machines.get_mut(&vm) else { return };
            let Some(Queued { task, mode, reason }) = machine.queue.remove(index) else { return };
            machine.running.push(Running { task, mode, ends, since: turn.now });
            turn.out.push(Decision::Start { task, on: Seats::first_free(vm), mode, reason });
        }
    }

    fn next_to_start(&self, now: Time, vm: VmId) -> Option<(usize, Time)> {
        let machine = self.machines.get(&vm).filter(|m| m.phase == Phase::Ready)?;
        let kind = self.kind(machine);
        if machine.running.len() + machine.leaving.len() >= kind.vcpus {
            return None;
        }
        let free = |q: &Queued| {
            let Progress { held, waits, .. } = self.task(q.task);
            held.is_none() && !waits
        };
        let index = machine.queue.iter().position(free)?;
        let Queued { task, mode, .. } = machine.queue[index];
        let there = machine.running.iter().map(|r| r.task).chain(machine.leaving.iter().copied());
        let used: Bytes = there.map(|t| self.problem.memory(t)).sum();
        if used + self.problem.memory(task) > kind.memory {
            return None;
        }
        Some((index, now + self.remaining(task, machine.offer(), mode)?))
    }

    /// Future use of a VM's vCPUs, including tasks that wait, as far as is known at `now`.
    pub(crate) fn packing(&self, now: Time, machine: &Machine) -> Packing {
        let mut packing = self.running_only(now, machine);
        for q in &machine.queue {
            if let Some(length) = self.remaining(q.task, machine.offer(), q.mode) {
                packing.push(length, self.problem.memory(q.task));
            }
        }
        packing
    }

    /// Future use of a VM's vCPUs if no waiting task is started.
    pub(crate) fn running_only(&self, now: Time, machine: &Machine) -> Packing {
        let mut packing = Packing::default();
        self.run_only(&mut packing, now, machine);
        packing
    }

    /// Like [`Floor::running_only`], but writes into an existing packing.
    pub(crate) fn run_only(&self, packing: &mut Packing, now: Time, machine: &Machine) {
        let kind = self.kind(machine);
        let from = if machine.phase == Phase::Booting { now.max(machine.ready_at) } else { now };
        packing.reset(kind.vcpus, from, kind.memory_limit);
        for r in &machine.running {
            packing.occupy(r.ends.max(from), self.problem.memory(r.task));
        }
    }

    /// The credits of a VM that have not been promised to tasks.
    pub(crate) fn credits(&self, now: Time, machine: &Machine) -> Credits {
        if self.kind(machine).burstable.is_none() {
            return Credits::ZERO;
        }
        let running = machine.running.iter().map(|r| (r.mode, Some(r.ends.since(now))));
        let waiting =
            machine.queue.iter().map(|q| (q.mode, self.remaining(q.task, machine.offer(), q.mode)));
        let bursting = running.chain(waiting).filter(|(mode, _)| *mode == Mode::Burst);
        let promised = bursting.filter_map(|(_, time)| time).map(needed);
        let balance = machine.balance(now, self.kind(machine));
        promised.fold(balance, Credits::saturating_sub)
    }

    /// Handles the end of a former attempt on `vm`: its vCPU is free, and the task may start where
    /// it waits.
    pub(crate) fn release(&mut self, turn: &mut Turn<'_>, task: TaskId, vm: VmId) {
        if let Some(machine) = self.machines.get_mut(&vm) {
            machine.leaving.retain(|&t| t != task);
            self.dispatch(turn, vm);
        }
        let Some(progress) = self.task_mut(task).filter(|p| p.held == Some(vm)) else { return };
        progress.held = None;
        if let Some(on) = progress.on {
            self.dispatch(turn, on);
        }
    }

    /// Queues a failed task again on its VM, before anything else there.
    pub(crate) fn retry(&mut self, vm: VmId, task: TaskId, mode: Mode) {
        if let Some(machine) = self.machines.get_mut(&vm) {
            let reason = StartReason::Retried;
            machine.queue.push_front(Queued { task, mode, reason });
        }
    }
}
