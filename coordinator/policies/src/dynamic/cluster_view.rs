//! The scheduler's view of the run: its VMs, the tasks on them, and the decisions that change
//! either.

use std::collections::BTreeSet;
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_model::{Decision, StartReason};
use dormouse_units::{ById, Bytes, Credits, Ppm, Span, TaskId, Time, VmId};

use super::scheduled_vm::{
    QueuedTask, RunningTask, ScheduledVm, VmPhase, credits_needed, vcpu_speed,
};
use super::token::WakeupPurpose;
use crate::packing::VcpuPacking;
use crate::problem::{KindId, KnownType, Offer, SchedulingProblem};
use crate::{BurstOn, SpareTime};
use dormouse_units::{Mode, Seats};

/// Context of one call of the scheduler: the time, and the list that decisions are pushed to.
#[derive(Debug)]
pub(crate) struct DecisionContext<'a> {
    pub(crate) now: Time,
    pub(crate) out: &'a mut Vec<Decision>,
}

impl DecisionContext<'_> {
    pub(crate) fn ask_for_wakeup(&mut self, at: Time, purpose: WakeupPurpose) {
        self.out.push(Decision::Wake { at, token: purpose.to_token() });
    }
}

/// State of one task as the scheduler knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskProgress {
    /// Part of the work that the task's last checkpoint keeps.
    pub(crate) done: Ppm,
    pub(crate) failures: u32,
    /// True if the task is finished or given up.
    pub(crate) settled: bool,
    /// True if the task has to wait until others are done.
    pub(crate) waits: bool,
    /// The VM in whose queue or on whose vCPU the task is; `None`: the task is on no VM.
    pub(crate) on: Option<VmId>,
    /// The VM on which an attempt is still being stopped, so that no other attempt may start; `None`: there is none.
    pub(crate) held: Option<VmId>,
}

/// The cluster as a dynamic scheduler sees it: its VMs, the tasks, and what may still be launched.
///
/// Methods with a [`DecisionContext`] push decisions and update the view at once by their expected
/// effects. Copies of the view serve to try out decisions.
#[derive(Clone, Debug)]
pub(crate) struct ClusterView {
    /// The scheduling problem, shared by all copies of the view on which decisions are tried out.
    pub(crate) problem: Arc<SchedulingProblem>,
    pub(crate) burst_on: BurstOn,
    pub(crate) spare_time: SpareTime,
    pub(crate) machines: ById<VmId, ScheduledVm>,
    /// Types and markets whose last launch was refused, unless a VM of that type and market has ended since.
    pub(crate) refused: BTreeSet<(KindId, Market)>,
    tasks: Vec<TaskProgress>,
    unsettled: usize,
    next_vm: VmId,
}

impl ClusterView {
    pub(crate) fn new(
        problem: SchedulingProblem,
        burst_on: BurstOn,
        spare_time: SpareTime,
    ) -> Self {
        let n = problem.task_count();
        let progress =
            |task| TaskProgress { waits: !problem.is_due_at_once(task), ..TaskProgress::default() };
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

    pub(crate) fn task_progress(&self, task: TaskId) -> TaskProgress {
        self.tasks.get(task.get() as usize).copied().unwrap_or_default()
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> Option<&mut TaskProgress> {
        self.tasks.get_mut(task.get() as usize)
    }

    pub(crate) fn type_of_vm(&self, machine: &ScheduledVm) -> &KnownType {
        &self.problem.kinds[machine.kind]
    }

    /// The deadline D as a time of the run.
    pub(crate) fn deadline(&self) -> Time {
        Time::ZERO + self.problem.deadline
    }

    /// Latest end of a task that leaves its successors enough time before the deadline.
    pub(crate) fn latest_end(&self, task: TaskId) -> Time {
        Time::ZERO + self.problem.latest_end(task)
    }

    /// True if every task is finished or given up.
    pub(crate) fn all_settled(&self) -> bool {
        self.unsettled == 0
    }

    /// Marks a task as finished or given up. False if it was already.
    pub(crate) fn settle_task(&mut self, task: TaskId) -> bool {
        let Some(progress) = self.task_mut(task).filter(|p| !p.settled) else { return false };
        progress.settled = true;
        self.unsettled -= 1;
        true
    }

    /// Gives up a task and all tasks that depend on it.
    pub(crate) fn give_up(&mut self, task: TaskId) {
        let problem = self.problem.clone();
        let mut given_up = vec![task];
        while let Some(task) = given_up.pop() {
            if self.settle_task(task) {
                given_up.extend(problem.followers().of_task(task));
            }
        }
    }

    /// Time that the rest of a task takes on a type in this mode; `None` if the task can't run on the type.
    pub(crate) fn remaining_time(&self, task: TaskId, on: Offer, mode: Mode) -> Option<Span> {
        let speed = vcpu_speed(mode, &self.problem.kinds[on.0]);
        self.problem.remaining_time(task, on, self.task_progress(task).done, speed)
    }

    /// Number of VMs of a type that may still be launched under the known limits.
    pub(crate) fn launchable_vms(&self, kind: KindId, market: Market) -> usize {
        if self.refused.contains(&(kind, market)) {
            return 0;
        }
        let alike = |m: &&ScheduledVm| m.kind == kind && m.market == market;
        let limit = self.problem.kinds[kind].limit(market) as usize;
        limit.saturating_sub(self.machines.values().filter(alike).count())
    }

    pub(crate) fn launch(
        &mut self,
        context: &mut DecisionContext<'_>,
        kind: KindId,
        market: Market,
    ) -> VmId {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        let offer = &self.problem.kinds[kind];
        let machine =
            ScheduledVm::new(kind, market, context.now + self.problem.takeover_boot, offer);
        let kind = offer.name.clone();
        context.out.push(Decision::Launch { vm, kind, market, bid: None });
        self.machines.insert(vm, machine);
        vm
    }

    /// Terminates a VM.
    pub(crate) fn terminate_vm(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        if self.machines.remove(&vm).is_some() {
            context.out.push(Decision::Terminate { vm, reason: None });
            self.refused.clear();
        }
    }

    /// Puts a task at the end of a VM's queue.
    pub(crate) fn enqueue_task(&mut self, vm: VmId, queued: QueuedTask) {
        let Some(machine) = self.machines.get_mut(&vm) else { return };
        machine.queue.push_back(queued);
        if let Some(progress) = self.task_mut(queued.task) {
            progress.on = Some(vm);
        }
    }

    /// Removes a task from a VM that still exists: from its queue or, by stopping the attempt, from
    /// its vCPU. With `keep` the attempt takes a checkpoint first if that loses less time than it
    /// saves, and the task is held until the checkpoint is complete.
    pub(crate) fn withdraw_task(
        &mut self,
        context: &mut DecisionContext<'_>,
        vm: VmId,
        task: TaskId,
        keep: bool,
    ) {
        let Some(machine) = self.machines.get_mut(&vm) else { return };
        let cost = self.problem.checkpoint_time(task, machine.kind);
        let unkept =
            machine.running.iter().find(|r| r.task == task).map(|r| context.now.since(r.since));
        let keep = keep && unkept.is_some_and(|unkept| unkept > cost);
        // The task is in the queue at most once, and most often first.
        if let Some(place) = machine.queue.iter().position(|q| q.task == task) {
            machine.queue.remove(place);
        }
        let stopped = machine.clear_vcpu(context.now, task, &self.problem.kinds[machine.kind]);
        if stopped {
            context.out.push(Decision::Stop { task, vm, keep });
            if keep {
                machine.leaving.push(task);
            }
        }
        if let Some(progress) = self.task_mut(task) {
            progress.on = None;
            progress.held = if stopped && keep { Some(vm) } else { progress.held };
        }
    }

    /// Checkpoints the running tasks of a VM that will be killed before they end. The checkpoints begin as
    /// late as possible, at two checkpoint times before the end of the VM; before that, a wake-up is
    /// requested.
    pub(crate) fn checkpoint_before_end(&self, context: &mut DecisionContext<'_>, vm: VmId) {
        let Some(machine) = self.machines.get(&vm).filter(|m| m.phase == VmPhase::Leaving) else {
            return;
        };
        let Some(end) = machine.doomed else { return };
        let cut =
            machine.running.iter().map(|r| (r, self.problem.checkpoint_time(r.task, machine.kind)));
        // A checkpoint that can't be complete in time is not begun.
        let cut: Vec<_> =
            cut.filter(|(r, cost)| r.ends > end && context.now + *cost < end).collect();
        let Some(longest) = cut.iter().map(|(_, cost)| *cost).max() else { return };
        let last = Time::from_micros(end.as_micros().saturating_sub(longest.times(2).as_micros()));
        if context.now < last {
            return context.ask_for_wakeup(last, WakeupPurpose::LastCheckpoint(vm));
        }
        context.out.extend(cut.iter().map(|(r, _)| Decision::Checkpoint { task: r.task, vm }));
    }

    /// Starts the queued tasks that can start on a VM, in order: one per free vCPU, as long as the
    /// memory suffices. A task that is held elsewhere or waits for its predecessors is passed over.
    pub(crate) fn dispatch_tasks(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        while let Some((index, ends)) = self.next_to_start(context.now, vm) {
            let Some(machine) = self.machines.get_mut(&vm) else { return };
            let Some(QueuedTask { task, mode, reason }) = machine.queue.remove(index) else {
                return;
            };
            machine.running.push(RunningTask { task, mode, ends, since: context.now });
            context.out.push(Decision::Start { task, on: Seats::first_free(vm), mode, reason });
        }
    }

    fn next_to_start(&self, now: Time, vm: VmId) -> Option<(usize, Time)> {
        let machine = self.machines.get(&vm).filter(|m| m.phase == VmPhase::Ready)?;
        let kind = self.type_of_vm(machine);
        if machine.running.len() + machine.leaving.len() >= kind.vcpus {
            return None;
        }
        let free = |q: &QueuedTask| {
            let TaskProgress { held, waits, .. } = self.task_progress(q.task);
            held.is_none() && !waits
        };
        let index = machine.queue.iter().position(free)?;
        let QueuedTask { task, mode, .. } = machine.queue[index];
        let there = machine.running.iter().map(|r| r.task).chain(machine.leaving.iter().copied());
        let used: Bytes = there.map(|t| self.problem.task_memory(t)).sum();
        if used + self.problem.task_memory(task) > kind.memory {
            return None;
        }
        Some((index, now + self.remaining_time(task, machine.offer_of_vm(), mode)?))
    }

    /// Expected use of a VM's vCPUs from `now` on by its running and queued tasks.
    pub(crate) fn expected_packing(&self, now: Time, machine: &ScheduledVm) -> VcpuPacking {
        let mut packing = self.running_only(now, machine);
        for q in &machine.queue {
            if let Some(length) = self.remaining_time(q.task, machine.offer_of_vm(), q.mode) {
                packing.push(length, self.problem.task_memory(q.task));
            }
        }
        packing
    }

    /// Expected use of a VM's vCPUs from `now` on by its running tasks alone.
    pub(crate) fn running_only(&self, now: Time, machine: &ScheduledVm) -> VcpuPacking {
        let mut packing = VcpuPacking::default();
        self.run_only(&mut packing, now, machine);
        packing
    }

    /// Writes the result of [`ClusterView::running_only`] into an existing packing.
    pub(crate) fn run_only(&self, packing: &mut VcpuPacking, now: Time, machine: &ScheduledVm) {
        let kind = self.type_of_vm(machine);
        let from = if machine.phase == VmPhase::Booting { now.max(machine.ready_at) } else { now };
        packing.reset(kind.vcpus, from, kind.memory_limit);
        for r in &machine.running {
            packing.occupy_lane(r.ends.max(from), self.problem.task_memory(r.task));
        }
    }

    /// The credits of a VM that have not been promised to tasks.
    pub(crate) fn free_credits(&self, now: Time, machine: &ScheduledVm) -> Credits {
        if self.type_of_vm(machine).burstable.is_none() {
            return Credits::ZERO;
        }
        let running = machine.running.iter().map(|r| (r.mode, Some(r.ends.since(now))));
        let waiting = machine
            .queue
            .iter()
            .map(|q| (q.mode, self.remaining_time(q.task, machine.offer_of_vm(), q.mode)));
        let bursting = running.chain(waiting).filter(|(mode, _)| *mode == Mode::Burst);
        let promised = bursting.filter_map(|(_, time)| time).map(credits_needed);
        let balance = machine.credit_balance(now, self.type_of_vm(machine));
        promised.fold(balance, Credits::saturating_sub)
    }

    /// Handles the end of an earlier attempt on `vm`: its vCPU is free, and the task may start
    /// where it is queued.
    pub(crate) fn release_task(
        &mut self,
        context: &mut DecisionContext<'_>,
        task: TaskId,
        vm: VmId,
    ) {
        if let Some(machine) = self.machines.get_mut(&vm) {
            machine.leaving.retain(|&t| t != task);
            self.dispatch_tasks(context, vm);
        }
        let Some(progress) = self.task_mut(task).filter(|p| p.held == Some(vm)) else { return };
        progress.held = None;
        if let Some(on) = progress.on {
            self.dispatch_tasks(context, on);
        }
    }

    /// Puts a failed task at the front of its VM's queue.
    pub(crate) fn requeue_failed(&mut self, vm: VmId, task: TaskId, mode: Mode) {
        if let Some(machine) = self.machines.get_mut(&vm) {
            let reason = StartReason::Retried;
            machine.queue.push_front(QueuedTask { task, mode, reason });
        }
    }
}
