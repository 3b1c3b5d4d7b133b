//! Checkpoints of running tasks: what their schemes want, and what the machines are commanded to do.

use dormouse_cloud::{Market, ProviderVmState};
use dormouse_model::{Command, Effect};
use dormouse_policies::{Checkpointing, Moment, Quote, TaskView, When};
use dormouse_units::{Attempt, Bytes, Ppm, Span, TaskId, Time, TypeName, VmId};

use super::Run;
use super::carry_out::DecisionRefusal::{self, Invalid, Superseded};
use crate::checkpoint_state::CheckpointState;
use crate::tasks::{TaskRecord, TaskState};
use crate::timers::RunTimer;

impl Run {
    /// Replaces the checkpointing scheme of the bag's tasks. The cost of a checkpoint and the scheme of parallel jobs
    /// stay those of the setup.
    #[must_use]
    pub fn with_checkpointing(mut self, scheme: Box<dyn Checkpointing>) -> Self {
        if let Some(tenant) = self.tenants.iter_mut().find(|tenant| tenant.work().has_bag()) {
            tenant.use_checkpointing(scheme);
        }
        self
    }

    /// Begins the checkpoints of an attempt on a VM; returns the points of its work at which the machine takes them.
    pub(super) fn checkpoints_of_attempt(&mut self, now: Time, task: TaskId, vm: VmId) -> Vec<Ppm> {
        let Some(record) = self.tasks.get_mut(task) else { return Vec::new() };
        if record.job.is_some() && self.job_checkpointing.is_none() {
            return Vec::new();
        }
        record.asked = CheckpointState::attempt_begun(now);
        self.ask_scheme(now, task, vm, Moment::Begins)
    }

    /// Returns the time for which a task with this memory is stopped for a checkpoint; zero for parallel jobs and
    /// in runs without checkpoints.
    pub(super) fn checkpoint_cost(&self, is_job: bool, memory: Bytes) -> Span {
        match is_job {
            false => self.setup.checkpoint.checkpoint_cost(memory),
            true => {
                self.setup.checkpoint_of_jobs().map_or(Span::ZERO, |of| of.checkpoint_cost(memory))
            }
        }
    }

    /// Records that a checkpoint of a task on a VM was stored or failed, and asks the task's checkpointing scheme for the next one.
    pub(super) fn after_checkpoint(&mut self, now: Time, task: TaskId, vm: VmId, how: Moment) {
        let Some(record) = self.task_mut(task) else { return };
        record.asked.checkpoint_over(now);
        if !record.asked.are_all_known() {
            self.ask_scheme(now, task, vm, how);
        }
    }

    /// Asks a task's checkpointing scheme for the next checkpoint, and sets timers accordingly; returns the points of the task's
    /// work at which the machine must take checkpoints.
    fn ask_scheme(&mut self, now: Time, task: TaskId, vm: VmId, moment: Moment) -> Vec<Ppm> {
        let answer = self.answer_of_scheme(now, task, vm, moment);
        let Some(record) = self.tasks.get_mut(task) else { return Vec::new() };
        let (attempt, turn) = (record.attempt, record.asked.count_answer());
        match answer {
            Some(When::At(at)) if at > now => {
                self.timers.set_timer(at, RunTimer::Checkpoint { task, attempt, turn });
            }
            // Of one that was taken at this instant there would be no end.
            Some(When::At(_)) => {
                if matches!(moment, Moment::Begins | Moment::Price | Moment::Look) {
                    record.asked.want_checkpoint();
                }
            }
            Some(When::Look(at)) if at > now => {
                self.timers.set_timer(at, RunTimer::Look { task, attempt, turn });
            }
            Some(When::Points(points)) if moment == Moment::Begins => {
                record.asked.all_are_known();
                return points;
            }
            Some(When::Look(_) | When::Points(_)) | None => {}
        }
        Vec::new()
    }

    fn answer_of_scheme(
        &mut self,
        now: Time,
        task: TaskId,
        vm: VmId,
        moment: Moment,
    ) -> Option<When> {
        let machine = self.provider.find_vm(vm)?;
        let record = self.tasks.get(task)?;
        let memory = match &record.job {
            Some(job) => job.memory_of_all(),
            None => self.setup.bag.tasks.get(task.get() as usize)?.memory,
        };
        let is_job = record.job.is_some();
        if !is_job && !self.setup.checkpoint.has_scheme_for(task) {
            return None;
        }
        let view = TaskView {
            task,
            attempt: record.attempt,
            moment,
            memory,
            runtime: record.runtime,
            kept: record.kept_checkpoint().map(|(_, done)| done).unwrap_or_default(),
            begun: record.sent,
            since: record.asked.last_kept(),
            cost: self.checkpoint_cost(is_job, memory),
        };
        let quote = Quote {
            kind: &machine.kind,
            market: machine.market,
            launched: machine.launched,
            usable: machine.usable,
            charged_from: machine.charged_from(),
            price: machine.price(),
            bid: machine.bid,
            change: self.provider.next_price(now, &machine.kind, machine.market),
        };
        if is_job {
            return self.job_checkpointing.as_mut()?.next(now, &view, &quote);
        }
        let tenant = self.tenants.iter_mut().find(|tenant| tenant.work().has_bag())?;
        tenant.checkpointing().next(now, &view, &quote)
    }

    /// Asks the checkpointing schemes of tasks on spot VMs of a type again, as the type's price has changed.
    pub(super) fn ask_at_price(&mut self, now: Time, kind: &TypeName) {
        let spot = self
            .provider
            .alive_vms()
            .filter(|(_, vm)| vm.kind == *kind && vm.market == Market::Spot);
        let on = |vm: VmId| self.vms.get(vm).into_iter().flat_map(|it| it.seating().seated_tasks());
        let tasks = spot.flat_map(|(vm, _)| on(vm).map(move |task| (task, vm)));
        let tasks: Vec<_> = tasks.collect();
        for (task, vm) in tasks {
            let is_open = |record: &TaskRecord| {
                !record.asked.are_all_known()
                    && matches!(record.state, TaskState::Sent(_) | TaskState::Running(_))
            };
            if self.tasks.get(task).is_some_and(is_open) {
                self.ask_scheme(now, task, vm, Moment::Price);
                self.take_if_due(task);
            }
        }
    }

    /// Takes a checkpoint of a task at the time that its checkpointing scheme set in its answer number `turn`, if no later answer
    /// replaces that one.
    pub(super) fn checkpoint_is_due(&mut self, task: TaskId, attempt: Attempt, turn: u32) {
        let is_open = self.asks_still(task, attempt, turn).is_some();
        if let Some(record) = self.task_mut(task).filter(|_| is_open) {
            record.asked.want_checkpoint();
            self.take_if_due(task);
        }
    }

    /// Asks a task's checkpointing scheme again, at the time that it set in its answer number `turn`, if no later answer replaces
    /// that one.
    pub(super) fn scheme_looks(&mut self, now: Time, task: TaskId, attempt: Attempt, turn: u32) {
        if let Some(vm) = self.asks_still(task, attempt, turn) {
            self.ask_scheme(now, task, vm, Moment::Look);
            self.take_if_due(task);
        }
    }

    /// Returns the VM of an attempt at a task, if the attempt is not over and the latest answer of the task's checkpointing scheme
    /// has the number `turn`.
    fn asks_still(&self, task: TaskId, attempt: Attempt, turn: u32) -> Option<VmId> {
        let record = self.tasks.get(task)?;
        let is_last = record.attempt == attempt && record.asked.is_last_answer(turn);
        record.vm().filter(|_| is_last)
    }

    /// Commands the machine to take the due checkpoint of a running task.
    pub(super) fn take_if_due(&mut self, task: TaskId) {
        self.take_if_due_saved(task, None);
    }

    /// Commands the machine to take the due checkpoint of a running task, whose program may save its work until
    /// `saved_by`.
    fn take_if_due_saved(&mut self, task: TaskId, saved_by: Option<Time>) {
        let Some(record) = self.tasks.get(task).filter(|record| record.asked.is_wanted()) else {
            return;
        };
        let TaskState::Running(vm) = record.state else { return };
        let attempt = record.attempt;
        let freezes = self.vms.get(vm).is_some_and(|record| record.freezes_once_kept());
        let is_awake = freezes
            || self.provider.find_vm(vm).is_some_and(|v| v.state == ProviderVmState::Running);
        let Some(host) = self.host_of(vm).filter(|_| is_awake) else { return };
        let Some(record) = self.tasks.get_mut(task) else { return };
        if !record.asked.start_wanted() {
            return;
        }
        self.effects.push(Effect::CheckpointAsked { task, attempt, vm });
        self.commands.push(Command::CheckpointNow { host, vm, task, attempt, saved_by });
    }

    /// Commands the machine to take the checkpoints that became due while a VM didn't run.
    pub(super) fn take_what_is_due_on(&mut self, vm: VmId) {
        let Some(record) = self.vms.get(vm) else { return };
        let tasks: Vec<_> = record.seating().seated_tasks().collect();
        for task in tasks {
            self.take_if_due(task);
        }
    }

    /// Hibernates a VM: takes a checkpoint of each task of a bag on it, if configured, and then freezes the VM.
    pub(super) fn freeze_vm(&mut self, vm: VmId) {
        let (Some(host), Some(record)) = (self.host_of(vm), self.vms.get_mut(vm)) else { return };
        if !self.setup.checkpoint.at_hibernation {
            return self.commands.push(Command::FreezeVm { host, vm });
        }
        record.freeze_once_kept(true);
        for task in self.running_on(vm) {
            if self.setup.checkpoint.has_scheme_for(task) {
                self.checkpoint_as_its_vm_leaves(task, None);
            }
        }
        self.freeze_once_kept(vm);
    }

    /// Returns whether a task belongs to the bag and is not a parallel job.
    pub(super) fn is_of_bag(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|record| record.job.is_none())
    }

    /// Checkpoints each task on a VM that was given notice. Programs that save their work may do so until `saved_by`.
    pub(super) fn checkpoint_at_notice(&mut self, vm: VmId, saved_by: Time) {
        for task in self.running_on(vm) {
            let saved_by = Some(saved_by);
            let saved_by = saved_by.filter(|_| self.setup.checkpoint.is_saved_by_program(task));
            if !self.setup.checkpoint.keeps_nothing_of(task) {
                self.checkpoint_as_its_vm_leaves(task, saved_by);
            }
        }
    }

    fn checkpoint_as_its_vm_leaves(&mut self, task: TaskId, saved_by: Option<Time>) {
        if let Some(record) = self.tasks.get_mut(task) {
            record.asked.want_checkpoint();
            self.take_if_due_saved(task, saved_by);
        }
    }

    /// Returns the tasks that run on a VM.
    fn running_on(&self, vm: VmId) -> Vec<TaskId> {
        let runs = |task: &TaskId| {
            let record = self.tasks.get(*task);
            record.is_some_and(|record| matches!(record.state, TaskState::Running(_)))
        };
        let taken = self.vms.get(vm).into_iter().flat_map(|record| record.seating().seated_tasks());
        taken.filter(runs).collect()
    }

    /// Freezes a VM that is to hibernate, unless a checkpoint of one of its tasks is still under way.
    pub(super) fn freeze_once_kept(&mut self, vm: VmId) {
        if !self.setup.checkpoint.at_hibernation {
            return;
        }
        let Some(record) = self.vms.get(vm).filter(|record| record.freezes_once_kept()) else {
            return;
        };
        let is_told = |task| self.tasks.get(task).is_some_and(|record| record.asked.is_told());
        if record.seating().seated_tasks().any(is_told) {
            return;
        }
        if let (Some(host), Some(record)) = (self.host_of(vm), self.vms.get_mut(vm)) {
            record.freeze_once_kept(false);
            self.commands.push(Command::FreezeVm { host, vm });
        }
    }

    /// Asks again for all checkpoints under way after the coordinator was away, since commands and reports may be
    /// lost.
    pub(super) fn ask_again(&mut self) {
        let ids: Vec<_> = self.tasks.ids().collect();
        for id in ids {
            if self.tasks.get_mut(id).is_some_and(|record| record.asked.want_again()) {
                self.take_if_due(id);
            }
        }
    }

    /// Takes a checkpoint of a running task for its scheduler.
    ///
    /// # Errors
    ///
    /// The task is a parallel job without checkpoints, it isn't there, or its VM doesn't run.
    pub(super) fn checkpoint_now(&mut self, task: TaskId, vm: VmId) -> Result<(), DecisionRefusal> {
        self.host_of_alive(vm)?;
        let has_none = self.job_checkpointing.is_none();
        if self.on_vm(task, vm)?.job.is_some() && has_none {
            return Err(Invalid(format!(
                "{task} is a parallel job, and these have no checkpoints here"
            )));
        }
        if self.setup.checkpoint.keeps_nothing_of(task) && self.is_of_bag(task) {
            return Err(Superseded(format!("nothing keeps the work of {task}")));
        }
        match self.provider.find_vm(vm).map(|v| v.state) {
            Some(ProviderVmState::Running) => {}
            // It has yet to hear of that.
            Some(ProviderVmState::Hibernating) => {
                return Err(Superseded(format!("{vm} hibernates")));
            }
            Some(other) => return Err(Invalid(format!("{vm} is not running: it is {other}"))),
            None => return Err(Invalid(format!("there is no {vm}"))),
        }
        if let Some(record) = self.task_mut(task) {
            record.asked.want_checkpoint();
        }
        self.take_if_due(task);
        Ok(())
    }
}
