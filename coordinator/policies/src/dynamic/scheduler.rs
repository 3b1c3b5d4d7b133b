//! Burst-HADS, HADS and ILS on-demand at run time: one state machine, with parts that can be off.

use std::collections::BTreeSet;

use dormouse_cloud::Market;
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_units::{Credits, Ppm, Span, TaskId, Time, VmId};

use super::cluster_view::{ClusterView, DecisionContext};
use super::migration::AffectedTask;
use super::scheduled_vm::{QueuedTask, RunningTask, ScheduledVm, VmPhase};
use super::sites::PlacementAttempts;
use super::stealing::StealingRule;
use super::token::WakeupPurpose;
use crate::problem::SchedulingProblem;
use crate::scheduler_input::SchedulerInput;
use crate::{
    BagSchedulerConfig, GivenUp, MigrateMoment, OnNotice, Plan, PlanError, Policy, StealMoment,
};
use dormouse_units::Mode;

/// Settings that make a dynamic scheduler act as Burst-HADS, HADS or ILS on-demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchedulerParts {
    /// True if migrations use the credits of idle burstable VMs (Algorithm 4, attempt 1).
    pub(crate) burst: bool,
    /// Moment at which the tasks of a hibernated VM migrate.
    pub(crate) migrate: MigrateMoment,
    pub(crate) stealing: StealingRule,
    /// The market in which VMs are launched for tasks that become ready to start during the run.
    pub(crate) market: Market,
    /// Length of the allocation cycles: an idle VM is kept to the end of its cycle; `None`: idle VMs are
    /// given back at once.
    pub(crate) keep_idle: Option<Span>,
    /// True if no idle VM is kept once no spot VM works.
    pub(crate) only_beside_spot: bool,
}

impl SchedulerParts {
    /// All parts off: the plan is carried out as it is, and idle VMs are given back at once.
    pub(crate) const NONE: Self = Self {
        burst: false,
        migrate: MigrateMoment::AtOnce,
        stealing: StealingRule::Never,
        market: Market::OnDemand,
        keep_idle: None,
        only_beside_spot: false,
    };
}

/// The scheduler that runs Burst-HADS, HADS or ILS on-demand, depending on its [`SchedulerParts`]. It is a pure state machine that
/// launches the VMs of a plan at the first notice, and then reacts to what happens to VMs and tasks.
#[derive(Clone, Debug)]
pub(crate) struct BagScheduler {
    pub(crate) view: ClusterView,
    pub(crate) parts: SchedulerParts,
    pub(crate) steal_moment: StealMoment,
    pub(crate) on_notice: OnNotice,
    plan: Plan,
    max_failures: u32,
    /// Tasks that have no VM, as no VM is available for them at present.
    pub(crate) unplaced: Vec<AffectedTask>,
    pub(crate) retry_after: Span,
    pub(crate) max_retries: u32,
    pub(crate) retries: u32,
    pub(crate) retry_armed: bool,
    /// Time of the pending wake-up at which HADS migrates tasks; `None`: none is pending.
    pub(crate) migrate_at: Option<Time>,
    /// The reason for which the first task was given up; `None`: no task was given up.
    pub(crate) given_up: Option<GivenUp>,
}

impl BagScheduler {
    /// Makes a scheduler from these parts that carries out a plan.
    ///
    /// # Errors
    ///
    /// There is no plan (`PlanError::BadPlan`).
    pub(crate) fn boxed_scheduler(
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
        parts: SchedulerParts,
    ) -> Result<Box<dyn Policy>, PlanError> {
        let name = given.config.name;
        let plan = plan.ok_or_else(|| {
            PlanError::BadPlan(format!("{name} needs a plan, and none was given"))
        })?;
        Ok(Box::new(Self::new(given.config, given.problem, plan, parts)))
    }

    pub(crate) fn new(
        config: &BagSchedulerConfig,
        problem: SchedulingProblem,
        plan: Plan,
        parts: SchedulerParts,
    ) -> Self {
        Self {
            view: ClusterView::new(problem, config.burst_on, config.spare_time),
            parts,
            steal_moment: config.steal,
            on_notice: config.on_notice,
            plan,
            max_failures: config.max_failures,
            unplaced: Vec::new(),
            retry_after: config.retry_after,
            max_retries: config.max_retries,
            retries: 0,
            retry_armed: false,
            migrate_at: None,
            given_up: None,
        }
    }

    /// Launches the plan's VMs and queues its tasks.
    fn begin_plan(&mut self, context: &mut DecisionContext<'_>) {
        for planned in std::mem::take(&mut self.plan.vms) {
            let kinds = &self.view.problem.kinds;
            let Some(kind) = kinds.iter().position(|k| k.name == planned.kind) else { continue };
            let vm = self.view.launch(context, kind, planned.market);
            let tasks = planned.in_order();
            let ready_at = context.now + self.view.problem.boot;
            if let Some(machine) = self.view.machines.get_mut(&vm) {
                machine.ready_at = ready_at;
                machine.queue.reserve(tasks.len());
            }
            for task in tasks {
                let (task, mode, reason) = (task.task, task.mode, StartReason::Planned);
                self.view.enqueue_task(vm, QueuedTask { task, mode, reason });
            }
        }
        self.end_if_settled(context);
    }

    fn vm_ready(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let Some(machine) = self.view.machines.get_mut(&vm) else { return };
        machine.phase = VmPhase::Ready;
        (machine.ready_at, machine.cycle_from) = (context.now, context.now);
        machine.credits.1 = context.now;
        self.retries = 0;
        self.view.dispatch_tasks(context, vm);
        self.if_idle(context, vm);
    }

    /// Handles a refused launch: the VM's tasks go to other VMs, each with the start reason that it had.
    fn launch_refused(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let Some(machine) = self.view.machines.remove(&vm) else { return };
        self.view.refused.insert((machine.kind, machine.market));
        let orphans = machine.queue.iter().map(|q| {
            let ran = self.view.task_progress(q.task).done > Ppm::ZERO;
            AffectedTask { task: q.task, ran, reason: q.reason }
        });
        let orphans: Vec<_> = orphans.collect();
        self.migrate_tasks(context, orphans, true);
        self.reconsider_migrations(context);
    }

    /// Handles the notice of a hibernation. The VM's tasks are handled once the VM is frozen; until then no other tasks
    /// are put on it. From now on the tasks are not expected to progress: they may be stopped for a checkpoint first.
    fn vm_hibernating(&mut self, now: Time, vm: VmId) {
        let machine = self.view.machines.get_mut(&vm);
        if let Some(machine) = machine.filter(|m| !matches!(m.phase, VmPhase::Hibernated { .. })) {
            machine.phase = VmPhase::Hibernated { since: now };
        }
    }

    fn vm_hibernated(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        if !self.view.machines.contains_key(&vm) {
            return;
        }
        // Leaving tasks are being stopped: each is free once the report of its stop arrives, with
        // or without a checkpoint.
        self.vm_hibernating(context.now, vm);
        match self.parts.migrate {
            MigrateMoment::AtOnce => self.migrate_frozen(context, vm),
            MigrateMoment::Late | MigrateMoment::LateOneForOne => {
                self.reconsider_migrations(context);
            }
        }
    }

    fn vm_resumed(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let Some(machine) = self.view.machines.get_mut(&vm) else { return };
        if let VmPhase::Hibernated { since } = machine.phase {
            let frozen = context.now.since(since);
            for running in &mut machine.running {
                running.ends += frozen;
                running.since += frozen;
            }
        }
        (machine.phase, machine.cycle_from) = (VmPhase::Ready, context.now);
        if let Some(at) = machine.doomed {
            return self.vm_preempting(context, vm, at);
        }
        self.view.dispatch_tasks(context, vm);
        self.if_idle(context, vm);
        self.reconsider_migrations(context);
    }

    /// Handles the notice that the VM will be killed at `at`: tasks that won't end before take a checkpoint and move to other VMs,
    /// now or once the VM is gone.
    fn vm_preempting(&mut self, context: &mut DecisionContext<'_>, vm: VmId, at: Time) {
        let Some(machine) = self.view.machines.get_mut(&vm) else { return };
        let running = machine.phase == VmPhase::Ready;
        let at = machine.doomed.map_or(at, |said| said.min(at));
        (machine.phase, machine.doomed) = (VmPhase::Leaving, Some(at));
        let all_stay = self.on_notice == OnNotice::Checkpoint;
        let stays = |task: TaskId| {
            let stays = |r: &RunningTask| r.task == task && (all_stay || r.ends <= at);
            running && machine.running.iter().any(stays)
        };
        let staying: Vec<_> = machine.all_tasks().filter(|&t| stays(t)).collect();
        let mut affected = self.affected_tasks(vm);
        affected.retain(|a| !staying.contains(&a.task));
        for a in &affected {
            self.view.withdraw_task(context, vm, a.task, running);
        }
        if all_stay && running {
            self.view.checkpoint_before_end(context, vm);
        }
        self.migrate_tasks(context, affected, true);
        self.reconsider_migrations(context);
    }

    fn vm_lost(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let affected = self.affected_tasks(vm);
        let Some(machine) = self.view.machines.remove(&vm) else { return };
        self.view.refused.clear();
        for a in &affected {
            if let Some(progress) = self.view.task_mut(a.task) {
                progress.on = None;
            }
        }
        for task in machine.leaving {
            self.view.release_task(context, task, vm);
        }
        self.migrate_tasks(context, affected, true);
        self.place_unplaced(context);
        self.reconsider_migrations(context);
    }

    /// Handles a task whose predecessors are all done: it starts where the plan has it, or gets a
    /// place.
    fn task_due(&mut self, context: &mut DecisionContext<'_>, task: TaskId) {
        let Some(progress) = self.view.task_mut(task).filter(|p| p.waits && !p.settled) else {
            return;
        };
        progress.waits = false;
        match progress.on {
            Some(vm) => self.view.dispatch_tasks(context, vm),
            None => {
                let arrived = AffectedTask { task, ran: false, reason: StartReason::Due };
                self.migrate_by(
                    context,
                    vec![arrived],
                    PlacementAttempts::of_arrival(self.parts.market),
                    &BTreeSet::new(),
                );
            }
        }
        self.reconsider_migrations(context);
    }

    fn task_started(&mut self, task: TaskId, vm: VmId, done: Ppm, since: Time) {
        let Some(progress) = self.view.task_mut(task).filter(|p| p.on == Some(vm)) else { return };
        progress.done = done;
        let Some(machine) = self.view.machines.get(&vm) else { return };
        let ends = machine.running.iter().find(|r| r.task == task).and_then(|r| {
            Some(since + self.view.remaining_time(task, machine.offer_of_vm(), r.mode)?)
        });
        let machine = self.view.machines.get_mut(&vm);
        let running = machine.and_then(|m| m.running.iter_mut().find(|r| r.task == task));
        if let Some((running, ends)) = running.zip(ends) {
            (running.ends, running.since) = (ends, since);
        }
    }

    fn task_finished(&mut self, context: &mut DecisionContext<'_>, task: TaskId, vm: VmId) {
        let on = self.view.task_progress(task).on;
        if !self.view.settle_task(task) {
            return;
        }
        self.unplaced.retain(|a| a.task != task);
        let ClusterView { machines, problem, .. } = &mut self.view;
        let clear = |m: &mut ScheduledVm| m.clear_vcpu(context.now, task, &problem.kinds[m.kind]);
        let cleared = machines.get_mut(&vm).is_some_and(clear);
        // The task finished while it was being stopped: the attempt elsewhere isn't needed any
        // more.
        if let Some(on) = on.filter(|&on| on != vm || !cleared) {
            self.view.withdraw_task(context, on, task, false);
        }
        // Only then: it would start where it waits for its checkpoint.
        if let Some(held) = self.view.task_progress(task).held {
            self.view.release_task(context, task, held);
        }
        if self.end_if_settled(context) {
            return;
        }
        for vm in [Some(vm), on.filter(|&on| on != vm)].into_iter().flatten() {
            self.view.dispatch_tasks(context, vm);
            self.if_idle(context, vm);
        }
    }

    fn task_failed(&mut self, context: &mut DecisionContext<'_>, task: TaskId, vm: VmId) {
        if self.view.task_progress(task).held == Some(vm) {
            return self.view.release_task(context, task, vm);
        }
        let Some(machine) = self.view.machines.get_mut(&vm) else { return };
        let Some(mode) = machine.running.iter().find(|r| r.task == task).map(|r| r.mode) else {
            return;
        };
        let kind = &self.view.problem.kinds[machine.kind];
        machine.clear_vcpu(context.now, task, kind);
        let burstable = kind.burstable.is_some();
        let Some(progress) = self.view.task_mut(task) else { return };
        progress.failures += 1;
        if progress.failures >= self.max_failures {
            self.given_up.get_or_insert(GivenUp::Work);
            self.view.give_up(task);
            if self.end_if_settled(context) {
                return;
            }
        } else if burstable && mode == Mode::Burst {
            // The VM's credits are spent: the task needs a new place.
            progress.on = None;
            let reason = StartReason::Retried;
            self.migrate_tasks(context, vec![AffectedTask { task, ran: true, reason }], true);
        } else {
            self.view.requeue_failed(vm, task, mode);
        }
        self.view.dispatch_tasks(context, vm);
        self.if_idle(context, vm);
    }

    fn on_checkpoint_kept(&mut self, task: TaskId, done: Ppm) {
        if let Some(progress) = self.view.task_mut(task) {
            progress.done = progress.done.max(done);
        }
    }

    fn on_credits_reported(&mut self, now: Time, vm: VmId, balance: Credits) {
        if let Some(machine) = self.view.machines.get_mut(&vm) {
            machine.credits = (balance, now);
        }
    }

    /// Reconsiders postponed migrations after a change in the VMs that waiting tasks may use.
    fn reconsider_migrations(&mut self, context: &mut DecisionContext<'_>) {
        match self.parts.migrate {
            MigrateMoment::AtOnce => {}
            MigrateMoment::Late => self.postpone_migrations(context),
            MigrateMoment::LateOneForOne => self.replace_one_for_one(context),
        }
    }

    /// When every task is finished or given up, gives all VMs back; returns whether that is so.
    pub(crate) fn end_if_settled(&mut self, context: &mut DecisionContext<'_>) -> bool {
        if self.view.all_settled() {
            let vms: Vec<_> = self.view.machines.keys().copied().collect();
            for vm in vms {
                self.view.terminate_vm(context, vm);
            }
        }
        self.view.all_settled()
    }
}

impl Policy for BagScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
    }
}

impl BagScheduler {
    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        let context = &mut DecisionContext { now, out };
        match *notice {
            Notice::Begin => self.begin_plan(context),
            Notice::VmReady { vm } => self.vm_ready(context, vm),
            Notice::LaunchRefused { vm, .. } => self.launch_refused(context, vm),
            Notice::VmHibernating { vm } => self.vm_hibernating(now, vm),
            Notice::VmHibernated { vm } => self.vm_hibernated(context, vm),
            Notice::VmResumed { vm } => self.vm_resumed(context, vm),
            Notice::VmPreempting { vm, at } => self.vm_preempting(context, vm, at),
            Notice::VmLost { vm } => self.vm_lost(context, vm),
            Notice::TaskStarted { task, vm, done, since } => {
                self.task_started(task, vm, done, since);
            }
            Notice::TaskDue { task } => self.task_due(context, task),
            Notice::TaskFinished { task, vm } => self.task_finished(context, task, vm),
            Notice::TaskFailed { task, vm, .. } => self.task_failed(context, task, vm),
            Notice::TaskStopped { task, vm, done } => {
                self.on_checkpoint_kept(task, done);
                self.view.release_task(context, task, vm);
            }
            Notice::Checkpointed { task, vm, done } => {
                self.on_checkpoint_kept(task, done);
                let machine = self.view.machines.get_mut(&vm);
                let running = machine.and_then(|m| m.running.iter_mut().find(|r| r.task == task));
                if let Some(running) = running {
                    running.since = now;
                }
            }
            Notice::Credits { vm, balance } => self.on_credits_reported(now, vm, balance),
            Notice::Wake { token } => match WakeupPurpose::from_token(token) {
                Some(WakeupPurpose::CycleEnd(vm)) => self.cycle_ended(context, vm),
                Some(WakeupPurpose::Migrate) => {
                    self.migrate_at = self.migrate_at.filter(|&at| at > now);
                    self.reconsider_migrations(context);
                }
                Some(WakeupPurpose::Retry) => self.retry_launches(context),
                Some(WakeupPurpose::LastCheckpoint(vm)) => {
                    self.view.checkpoint_before_end(context, vm);
                }
                None => {}
            },
            Notice::HostJoined | Notice::Available { .. } => {
                self.view.refused.clear();
                self.place_unplaced(context);
            }
            Notice::Price { .. }
            | Notice::VmRebalance { .. }
            | Notice::Submitted { .. }
            | Notice::Requested { .. }
            | Notice::Rejected { .. } => {}
        }
        self.end_idle_without_spot(context);
    }
}
