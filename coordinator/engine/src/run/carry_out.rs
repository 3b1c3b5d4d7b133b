//! Decisions of the scheduler, checked and carried out.

use std::collections::VecDeque;

use dormouse_cloud::{
    BurstableTerms, Interruption, InterruptionAction, InterruptionTarget, LaunchError,
    LaunchRequest, Market, ProviderVm, ProviderVmState,
};
use dormouse_model::{
    Command, Decision, Effect, Notice, PromotionMethod, StartReason, Submission, TaskStart, VmEnd,
};
use dormouse_units::{
    Attempt, Bytes, HostId, Mode, Ppm, Price, Seats, Span, TaskId, Tier, Time, TypeName, VmId,
};

use super::Run;
use crate::images::{FellBack, TaskImage};
use crate::seating::SeatConflict;
use crate::tasks::TaskState;
use crate::timers::RunTimer;
use crate::vm_record::VmRecord;

use DecisionRefusal::{Invalid, Superseded};

/// Reasons for not carrying out a decision.
#[derive(Debug)]
pub(crate) enum DecisionRefusal {
    /// The state had changed before the scheduler could learn of it: the decision was no mistake, and the scheduler's
    /// next notices explain it.
    Superseded(String),
    /// The decision could never be carried out: a bug of the policy.
    Invalid(String),
}

/// Resources and run time that a task needs on an instance type.
struct TaskNeeds {
    is_job: bool,
    processes: usize,
    memory: Bytes,
    /// Real run time of the task at full speed; `said` is the run time that the bag states.
    runtime: Span,
    said: Span,
}

impl Run {
    /// Carries out one decision.
    ///
    /// # Errors
    ///
    /// The reason for refusing it; nothing has changed then.
    pub(super) fn carry_out(
        &mut self,
        now: Time,
        decision: &Decision,
        notices: &mut VecDeque<Notice>,
    ) -> Result<(), DecisionRefusal> {
        match decision {
            Decision::Launch { vm, kind, market, bid } => {
                self.launch_vm(now, *vm, (kind, *market, *bid), notices)?;
            }
            Decision::Terminate { vm, reason } => {
                self.terminate_vm(now, *vm)?;
                reason.iter().for_each(|reason| self.counts.given_back(*reason));
            }
            Decision::Start { task, on, mode, reason } => {
                self.start_task(now, *task, on, *mode, *reason)?;
            }
            Decision::Promote { task, vm, by, .. } => {
                self.promote_job(now, *task, *vm, by, notices)?;
            }
            Decision::Stop { task, vm, keep } => self.stop_task(*task, *vm, *keep, notices)?,
            Decision::Checkpoint { task, vm } => self.checkpoint_now(*task, *vm)?,
            Decision::FallBack { task, done } => self.fall_back(*task, *done)?,
            Decision::SetMode { task, vm, mode } => {
                let host = self.host_of_alive(*vm)?;
                let record = self.on_vm(*task, *vm)?;
                record.mode = *mode;
                let attempt = record.attempt;
                self.commands.push(Command::SetMode {
                    host,
                    vm: *vm,
                    task: *task,
                    attempt,
                    mode: *mode,
                });
            }
            Decision::SetInterruption { vm, hibernates } => {
                self.host_of_alive(*vm)?;
                self.provider.interrupt_by(*vm, *hibernates);
            }
            Decision::SetVcpuUse { vm, used, surplus } => {
                self.declare_use(now, *vm, *used, *surplus)?;
            }
            Decision::Resume { vm } => self.resume_vm(now, *vm, notices)?,
            // Asked for again and again at one instant, it would be given for ever.
            Decision::Wake { at, .. } if *at <= now => {
                return Err(Invalid(format!("a wake-up at {at} has to be after now, {now}")));
            }
            Decision::Wake { at, token } => self.timers.set_timer(*at, RunTimer::Wake(*token)),
        }
        Ok(())
    }

    fn launch_vm(
        &mut self,
        now: Time,
        vm: VmId,
        (kind, market, bid): (&TypeName, Market, Option<Price>),
        notices: &mut VecDeque<Notice>,
    ) -> Result<(), DecisionRefusal> {
        let request = self.request_of(vm);
        if let Some(request) = request.filter(|request| !self.requests.launch_asked(*request)) {
            return Err(Invalid(format!("there is no {request}, or it had its VM")));
        }
        let limited = request.is_none();
        let asked = LaunchRequest { kind, market, bid, limited };
        let launched = match self.provider.launch_vm(now, vm, &asked) {
            Ok(launched) => launched,
            Err(refused) => {
                self.counts.launches_refused += 1;
                // Whoever is refused what he requested does without it, and asks for nothing more.
                match request {
                    Some(_) => self.request_is_over(now, vm),
                    None => self.refused.add_refused(vm),
                }
                let unavailable = matches!(refused, LaunchError::Unavailable { .. });
                let why = refused.to_string();
                notices.push_back(Notice::LaunchRefused { vm, why, unavailable });
                return Ok(());
            }
        };
        // The provider has just granted it, so the type is there.
        let Some(offer) = self.setup.catalogue.get(kind) else { return Ok(()) };
        self.counts.vms_launched += 1;
        let record = VmRecord::launched_as(offer, self.setup.is_two_tier(kind));
        self.vms.insert(vm, Box::new(record));
        let is_of_api = self.setup.requests && request.is_none();
        self.surpluses.vm_launched(now, vm, offer.burstable, is_of_api);
        if self.provider.tiers().is_some() {
            self.supplies.vm_launched(vm, offer.vcpus);
        }
        self.effects.push(Effect::VmLaunched {
            vm,
            kind: kind.clone(),
            market,
            price: launched.price,
            bid: launched.bid,
            vcpus: offer.vcpus,
            host: launched.host,
        });
        if launched.ready_at.is_some() {
            self.boot_vm(now, vm);
        }
        for victim in launched.victims {
            self.displace_vm(now, victim, vm, notices);
        }
        Ok(())
    }

    /// Creates a VM on its host, once the VM has its room there.
    pub(super) fn boot_vm(&mut self, now: Time, vm: VmId) {
        let Some(granted) = self.provider.find_vm(vm) else { return };
        let (host, kind, market) = (granted.host, granted.kind.clone(), granted.market);
        let Some(offer) = self.setup.catalogue.get(&kind) else { return };
        self.timers.set_timer(now + self.setup.catalogue.boot, RunTimer::Boot(vm));
        self.commands.push(Command::CreateVm {
            host,
            vm,
            vcpus: offer.vcpus,
            memory: offer.memory,
            burstable: offer.burstable.map(BurstableTerms::of_machine),
            two_tier: self.setup.is_two_tier(&kind),
            kind,
            market,
        });
    }

    /// Returns the host of a VM that is alive.
    pub(super) fn host_of_alive(&self, vm: VmId) -> Result<HostId, DecisionRefusal> {
        self.find_living(vm).map(|living| living.host)
    }

    /// Returns a VM that is alive.
    fn find_living(&self, vm: VmId) -> Result<&ProviderVm, DecisionRefusal> {
        match self.provider.find_vm(vm) {
            Some(living) if living.is_alive() => Ok(living),
            None if !self.refused.contains(vm) => Err(Invalid(format!("there is no {vm}"))),
            _ => Err(Superseded(format!("{vm} is not alive"))),
        }
    }

    fn terminate_vm(&mut self, now: Time, vm: VmId) -> Result<(), DecisionRefusal> {
        let host = self.host_of_alive(vm)?;
        self.end_vm(now, vm, VmEnd::Terminated);
        self.commands.push(Command::DestroyVm { host, vm });
        Ok(())
    }

    fn resume_vm(
        &mut self,
        now: Time,
        vm: VmId,
        notices: &mut VecDeque<Notice>,
    ) -> Result<(), DecisionRefusal> {
        self.host_of_alive(vm)?;
        let (target, action) = (InterruptionTarget::Vm(vm), InterruptionAction::Resume);
        self.interrupt_vms(now, Interruption { at: now, target, action }, notices);
        match self.provider.find_vm(vm).map(|vm| vm.state) {
            Some(ProviderVmState::Resuming) => Ok(()),
            _ => Err(Superseded(format!("{vm} can't be resumed now"))),
        }
    }

    fn start_task(
        &mut self,
        now: Time,
        task: TaskId,
        on: &Seats,
        mode: Mode,
        reason: StartReason,
    ) -> Result<(), DecisionRefusal> {
        let vm = on.vm;
        let machine = self.find_living(vm)?;
        let host = machine.host;
        // Told to hibernate but not heard of yet by the scheduler: the task waits there frozen.
        let freezing = machine.state == ProviderVmState::Hibernating;
        if !freezing && machine.state != ProviderVmState::Running {
            return Err(Invalid(format!("{vm} is not running: it is {}", machine.state)));
        }
        let kind = &machine.kind;
        let record = self.tasks.get(task).ok_or_else(|| Invalid(format!("there is no {task}")))?;
        if record.state != TaskState::Waiting {
            return Err(Invalid(format!("{task} is not waiting: it is {}", record.state)));
        }
        if record.job.is_none()
            && let Some(why) = self.why_not_due(now, task)
        {
            return Err(Invalid(why));
        }
        let needs = self.task_needs(task, record.job.as_deref(), kind)?;
        let Some(there) = self.vms.get(vm) else {
            return Err(Invalid(format!("there is no {vm}")));
        };
        let seats = check_seats(there, task, on, &needs)?;
        let (room, burstable) = match &record.job {
            // Where no memory is spoken of, none has to be counted.
            Some(job) if job.memory == Bytes::ZERO => (Bytes::ZERO, None),
            _ => (self.free_memory(there), there.burstable()),
        };
        if needs.memory > room {
            return Err(Invalid(format!("{task} needs {}, {vm} has {room} free", needs.memory)));
        }
        if mode == Mode::Baseline && burstable.is_none() {
            return Err(Invalid(format!("{vm} is not burstable: it has no baseline mode")));
        }
        let TaskNeeds { memory, runtime, said, .. } = needs;
        let Some(record) = self.tasks.get_mut(task) else { return Ok(()) };
        (record.attempt, record.sent) = (record.attempt.next(), now);
        (record.mode, record.runtime) = (mode, said);
        // Whoever decides it and for whatever reason: it ran, and goes on elsewhere.
        let migrates = record.job.is_none() && record.ran_on.is_some_and(|on| on != vm);
        let from_scratch = record.images.begin_on(host);
        let image = record.images.newest_image();
        let (attempt, from) = (record.attempt, image.map(TaskImage::seq_and_done));
        let from_attempt = image.map(|image| image.by).unwrap_or_default();
        let job = record.job.clone();
        self.fell_back(task, from_scratch, "no older one is left, and this host refused it before");
        self.seat_task(task, seats.clone());
        let is_burst = mode == Mode::Burst && burstable.is_some();
        self.counts.migrations += u32::from(migrates);
        self.counts.burst_starts += u32::from(migrates && is_burst);
        self.counts.steals += u32::from(reason == StartReason::Stolen);
        let vcpu = self.provider.tiers().and_then(|_| seats.cpus.first().copied());
        self.effects.push(Effect::TaskSent { task, attempt, vm, reason, from, vcpu });
        let checkpoints = self.checkpoints_of_attempt(now, task, vm);
        let checkpoint_cost = self.checkpoint_cost(job.is_some(), memory);
        let start = TaskStart {
            host,
            seats,
            task,
            attempt,
            memory,
            runtime,
            from,
            from_attempt,
            checkpoints,
            checkpoint_cost,
            mode,
            job,
        };
        let freezing = if freezing { self.vms.get_mut(vm) } else { None };
        match freezing {
            Some(record) => record.hold_start(start),
            None => self.commands.push(Command::StartTask(start)),
        }
        Ok(())
    }

    /// Returns the time and memory that a task needs on a type.
    fn task_needs(
        &self,
        task: TaskId,
        job: Option<&Submission>,
        kind: &TypeName,
    ) -> Result<TaskNeeds, DecisionRefusal> {
        if let Some(job) = job {
            let Submission { processes, runtime, .. } = *job;
            let (is_job, processes, memory) = (true, processes as usize, job.memory_of_all());
            return Ok(TaskNeeds { is_job, processes, memory, runtime, said: runtime });
        }
        let spec = self.setup.bag.tasks.get(task.get() as usize);
        let spec = spec.ok_or_else(|| Invalid(format!("there is no {task}")))?;
        let no_runtime = || Invalid(format!("{task} has no run time on {kind}"));
        let said = *spec.runtime.get(kind).ok_or_else(no_runtime)?;
        let runtime = self.setup.real_runtime(task, said);
        Ok(TaskNeeds { is_job: false, processes: 1, memory: spec.memory, runtime, said })
    }

    /// Promotes a background job to the foreground.
    fn promote_job(
        &mut self,
        now: Time,
        task: TaskId,
        vm: VmId,
        by: &PromotionMethod,
        notices: &mut VecDeque<Notice>,
    ) -> Result<(), DecisionRefusal> {
        let host = self.host_of_alive(vm)?;
        if self.provider.find_vm(vm).is_none_or(|v| v.state != ProviderVmState::Running) {
            return Err(Invalid(format!("{vm} is not running")));
        }
        let record = self.on_vm(task, vm)?;
        let attempt = record.attempt;
        let Some(Seats { tier: Tier::Background, cpus, .. }) = record.seats.clone() else {
            return Err(Invalid(format!("{task} is not in the background of {vm}")));
        };
        let on = match by {
            PromotionMethod::Swap => cpus.clone(),
            PromotionMethod::Kill { on } | PromotionMethod::Migrate { on } => on.clone(),
        };
        if on.len() != cpus.len() {
            let (got, wanted) = (on.len(), cpus.len());
            return Err(Invalid(format!("{task} has {wanted} processes and is given {got} vCPUs")));
        }
        let free = self.vms.get(vm).map(|r| r.seating().check_free(Tier::Foreground, &on, task));
        if let Some(Err(SeatConflict(why))) = free {
            return Err(Invalid(format!("{task} can't come to the foreground of {vm}: {why}")));
        }
        match by {
            PromotionMethod::Swap => {
                self.reseat_task(task, Tier::Foreground, on);
                self.counts.swaps += 1;
                self.commands.push(Command::PromoteTask { host, vm, task, attempt });
            }
            PromotionMethod::Migrate { .. } => {
                self.reseat_task(task, Tier::Foreground, on.clone());
                self.counts.migrations += 1;
                self.commands.push(Command::MoveTask { host, vm, task, attempt, on });
            }
            PromotionMethod::Kill { .. } => {
                self.stop_task(task, vm, false, notices)?;
                self.counts.kills += 1;
                let seats = Seats { vm, tier: Tier::Foreground, cpus: on };
                self.start_task(now, task, &seats, Mode::Burst, StartReason::Retried)?;
            }
        }
        Ok(())
    }

    /// Returns the free memory of a VM.
    fn free_memory(&self, there: &VmRecord) -> Bytes {
        // Whoever has a seat has it once for each of its processes.
        let of_process = |task: TaskId| match self.tasks.get(task).map(|record| &record.job) {
            Some(Some(job)) => job.memory,
            _ => self.setup.bag.tasks.get(task.get() as usize).map_or(Bytes::ZERO, |t| t.memory),
        };
        let taken = there.seating().seated_tasks().map(of_process).sum();
        there.memory().saturating_sub(taken)
    }

    fn stop_task(
        &mut self,
        task: TaskId,
        vm: VmId,
        keep: bool,
        notices: &mut VecDeque<Notice>,
    ) -> Result<(), DecisionRefusal> {
        let host = self.host_of_alive(vm)?;
        let frozen = self.provider.find_vm(vm).is_some_and(|v| v.state != ProviderVmState::Running);
        let record = self.on_vm(task, vm)?;
        let (attempt, kept) = (record.attempt, record.kept_checkpoint());
        // What is frozen can't be checkpointed any more: what was kept before is kept.
        let is_lost = self.setup.checkpoint.keeps_nothing_of(task) && self.is_of_bag(task);
        let checkpoint = keep && !frozen && !is_lost;
        self.set_state(task, if checkpoint { TaskState::Stopping(vm) } else { TaskState::Waiting });
        if keep && !checkpoint {
            let done = kept.map(|(_, done)| done).unwrap_or_default();
            notices.push_back(Notice::TaskStopped { task, vm, done });
        }
        if !self.vms.get_mut(vm).is_some_and(|record| record.withdraw_start(task)) {
            self.commands.push(Command::StopTask { host, vm, task, attempt, keep: checkpoint });
        }
        Ok(())
    }

    /// Gives up the checkpoints of a waiting task that hold more than `most` of its work.
    fn fall_back(&mut self, task: TaskId, most: Ppm) -> Result<(), DecisionRefusal> {
        let record = self.task_mut(task).ok_or_else(|| Invalid(format!("there is no {task}")))?;
        if record.state != TaskState::Waiting {
            return Err(Invalid(format!("{task} is not waiting: it is {}", record.state)));
        }
        if let Some(FellBack { from, to, not_on }) = record.images.note_begun(most) {
            let (why, given_up) = ("its scheduler gave up the newer ones".to_owned(), true);
            self.effects.push(Effect::RestoreFellBack { task, from, to, not_on, why, given_up });
        }
        Ok(())
    }

    /// Returns a task that was sent to a VM and has not ended on it.
    pub(super) fn on_vm(
        &mut self,
        task: TaskId,
        vm: VmId,
    ) -> Result<&mut crate::TaskRecord, DecisionRefusal> {
        let record = self.task_mut(task).ok_or_else(|| Invalid(format!("there is no {task}")))?;
        match record.state {
            TaskState::Sent(on) | TaskState::Running(on) if on == vm => Ok(record),
            TaskState::Waiting | TaskState::Finished if record.attempt > Attempt::default() => {
                Err(Superseded(format!("{task} is no longer on {vm}")))
            }
            other => Err(Invalid(format!("{task} is not on {vm}: it is {other}"))),
        }
    }
}

/// Returns the seats (each a vCPU of the VM and a tier) that a decision names for a task, if they are free.
fn check_seats(
    there: &VmRecord,
    task: TaskId,
    on: &Seats,
    needs: &TaskNeeds,
) -> Result<Seats, DecisionRefusal> {
    let Seats { vm, tier, ref cpus } = *on;
    let (seating, two_tier) = (there.seating(), there.is_two_tier());
    if needs.is_job != two_tier {
        let whose = if two_tier { "parallel jobs" } else { "tasks of a bag" };
        return Err(Invalid(format!("{vm} is for {whose}, and {task} is none")));
    }
    if tier == Tier::Background && !two_tier {
        return Err(Invalid(format!("{vm} has no background: only the machine for jobs has")));
    }
    let cpus = match cpus.is_empty() && needs.processes == 1 {
        true => seating
            .first_free()
            .ok_or_else(|| Invalid(format!("{vm} has no free vCPU for {task}")))?,
        false => cpus.clone(),
    };
    if cpus.len() != needs.processes {
        let (got, wanted) = (cpus.len(), needs.processes);
        return Err(Invalid(format!("{task} has {wanted} processes and is given {got} vCPUs")));
    }
    match seating.check_free(tier, &cpus, task) {
        Ok(()) => Ok(Seats { vm, tier, cpus }),
        Err(SeatConflict(why)) => Err(Invalid(format!("{task} can't start on {vm}: {why}"))),
    }
}
