//! Modelled machines: the same state machines that are the reference for real machines, without waiting.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dormouse_cloud::BurstableTerms;
use dormouse_model::{Command, Report, TaskStart};
use dormouse_units::{
    Attempt, CheckpointSeq, HostId, Ppm, Seats, Span, TaskId, Time, Usage, VmId, Window,
};
use dormouse_vm::{
    CheckpointHold, CreditSpec, MachineSpec, ModelTask, ProcessorSharing, VmModel, WorkEvent,
};

use super::last_saves::{AttemptPlace, LastSaves, SaveRequest};
use super::world::{MachineWorld, Reports};

/// Model of parallel jobs that share processors on modelled machines.
#[derive(Clone, Copy, Debug)]
pub struct TwoTierLaw {
    /// Law of the speeds of two jobs that share a vCPU.
    pub sharing: ProcessorSharing,
    /// Time for which a migrated job is stopped.
    pub migration_cost: Span,
    /// Seed of the model's random draws.
    pub seed: u64,
}

/// All machines of a virtual run, as models of VMs that carry out commands at once and report what happens on them.
#[derive(Debug)]
pub struct ModelledMachines {
    law: TwoTierLaw,
    /// Models of the living VMs with their hosts. The models are boxed, since a VM that lives long keeps an empty place
    /// for each VM launched after it.
    vms: Window<Box<(HostId, VmModel)>, VmId>,
    /// Next time of each VM's own events; entries may be out of date.
    agenda: BinaryHeap<Reverse<(Time, VmId)>>,
    /// VMs whose entry in `agenda` must be recomputed.
    touched: Vec<VmId>,
    checkpoints: BTreeMap<TaskId, CheckpointSeq>,
    saves: LastSaves,
    /// Buffer for the events of one step of a model.
    told: Vec<WorkEvent>,
}

impl ModelledMachines {
    /// Makes the model of a run that has no machines yet; `law` models parallel jobs on the machines that will be added.
    #[must_use]
    pub fn new(law: TwoTierLaw) -> Self {
        Self {
            law,
            vms: Window::default(),
            agenda: BinaryHeap::new(),
            touched: Vec::new(),
            checkpoints: BTreeMap::new(),
            saves: LastSaves::default(),
            told: Vec::new(),
        }
    }
}

impl Default for ModelledMachines {
    /// Makes the model of a run without parallel jobs, and without machines yet.
    fn default() -> Self {
        Self::new(TwoTierLaw {
            sharing: ProcessorSharing::PERFECT,
            migration_cost: Span::ZERO,
            seed: 0,
        })
    }
}

impl MachineWorld for ModelledMachines {
    fn is_idle(&self) -> bool {
        self.vms.iter().all(|(_, machine)| machine.1.is_empty())
    }

    fn host_lost(&mut self, lost: HostId) {
        let on_it = self.vms.iter().filter(|(_, machine)| machine.0 == lost);
        for vm in on_it.map(|(vm, _)| vm).collect::<Vec<_>>() {
            self.vms.remove(vm);
            self.saves.vm_gone(vm);
        }
    }

    fn next_at(&mut self) -> Option<Time> {
        let of_models = self.next_of_models();
        of_models.into_iter().chain(self.saves.next_at()).min()
    }

    fn is_due(&mut self, now: Time) -> bool {
        self.saves.next_at().is_some_and(|at| at <= now) || self.is_model_due(now)
    }

    fn step_machines(&mut self, now: Time, out: &mut Reports) {
        match self.saves.take_due(now) {
            Some((place, request)) => self.do_put_off(now, place, request, out),
            None => self.step_model(now, out),
        }
    }

    fn execute_command(&mut self, now: Time, command: Command, out: &mut Reports) {
        match command {
            Command::CreateVm { host, vm, vcpus, memory, burstable, two_tier, .. } => {
                let credits = burstable.map(credit_spec);
                let model =
                    VmModel::new(now, MachineSpec { vcpus, memory, credits }).leaving_when_done();
                let TwoTierLaw { sharing, seed, .. } = self.law;
                let model = if two_tier { model.with_sharing(sharing, seed) } else { model };
                self.vms.insert(vm, Box::new((host, model)));
                out.push_back((host, Report::VmCreated { vm }));
            }
            Command::DestroyVm { host, vm } => {
                self.vms.remove(vm);
                self.saves.vm_gone(vm);
                out.push_back((host, Report::VmDestroyed { vm }));
            }
            Command::FreezeVm { host, vm } => {
                if let Some(model) = self.model_of(vm) {
                    model.freeze_vm(now);
                    out.push_back((host, Report::VmFrozen { vm, real_took_us: 0 }));
                }
            }
            Command::ThawVm { host, vm } => {
                if let Some(model) = self.model_of(vm) {
                    model.thaw_vm(now);
                    out.push_back((host, Report::VmThawed { vm, real_took_us: 0 }));
                    self.after_change(vm, out);
                }
            }
            Command::StartTask(start) => self.start_task(now, start, out),
            Command::StopTask { host, vm, task, attempt, keep } => {
                let place = AttemptPlace { host, vm, task, attempt };
                if !keep || !self.saves.put_off(now, place, SaveRequest::Stop) {
                    self.stop_task(now, (host, vm), task, attempt, keep, out);
                }
            }
            Command::CheckpointNow { host, vm, task, attempt, saved_by: Some(until) } => {
                self.give_notice(now, AttemptPlace { host, vm, task, attempt }, until);
            }
            Command::CheckpointNow { host, vm, task, attempt, saved_by: None } => {
                let place = AttemptPlace { host, vm, task, attempt };
                if !self.saves.put_off(now, place, SaveRequest::Checkpoint) {
                    self.change_vm(vm, out, |model| model.checkpoint_task(now, task, attempt));
                }
            }
            Command::SetMode { vm, task, attempt, mode, .. } => {
                self.change_vm(vm, out, |model| model.set_mode(now, task, attempt, mode));
            }
            // In virtual time nobody asks for a fault, as there is neither a network nor a disk, and no program
            // runs that could be told anything.
            Command::Fault { .. } | Command::Announce { .. } => {}
            Command::SetSupply { vm, vcpu, share, .. } => {
                // It makes use of a part of what it is left, as jobs do.
                let TwoTierLaw { sharing, seed, .. } = self.law;
                let share = if share < Ppm::ONE { sharing.left_to(vm, share, seed) } else { share };
                self.change_vm(vm, out, |model| {
                    model.set_supply(now, vcpu, share);
                    true
                });
            }
            Command::PromoteTask { vm, task, attempt, .. } => {
                self.change_vm(vm, out, |model| model.promote_task(now, task, attempt));
            }
            Command::MoveTask { vm, task, attempt, on, .. } => {
                let takes = self.law.migration_cost;
                self.change_vm(vm, out, |model| model.move_to(now, task, attempt, on, takes));
            }
        }
    }
}

impl ModelledMachines {
    /// Returns the next time at which something happens in a VM's model without a command.
    fn next_of_models(&mut self) -> Option<Time> {
        while let Some(vm) = self.touched.pop() {
            if let Some(at) = self.model_of(vm).and_then(VmModel::next_at) {
                self.agenda.push(Reverse((at, vm)));
            }
        }
        loop {
            let &Reverse((at, vm)) = self.agenda.peek()?;
            if self.model_of(vm).and_then(VmModel::next_at) == Some(at) {
                return Some(at);
            }
            self.agenda.pop();
        }
    }

    /// Returns whether a VM's model has something to do by now.
    fn is_model_due(&mut self, now: Time) -> bool {
        for vm in &self.touched {
            if self.vms.get(*vm).is_some_and(|machine| machine.1.may_be_due()) {
                return self.next_of_models().is_some_and(|at| at <= now);
            }
        }
        while let Some(&Reverse((at, vm))) = self.agenda.peek()
            && at <= now
        {
            // A VM that was touched gets another entry.
            if !self.touched.contains(&vm) {
                return self.next_of_models().is_some_and(|at| at <= now);
            }
            self.agenda.pop();
        }
        false
    }

    /// Steps the VM's model that is due first.
    fn step_model(&mut self, now: Time, out: &mut Reports) {
        let Some(&Reverse((_, vm))) = self.agenda.peek() else { return };
        let Some((host, model)) = self.vms.get_mut(vm).map(Box::as_mut) else { return };
        model.step_until(now, &mut self.told);
        for event in self.told.drain(..) {
            let report = match event {
                // Nobody tells a modelled task when to stand still.
                WorkEvent::Due { .. } => continue,
                WorkEvent::Finished { task, attempt } => {
                    self.saves.attempt_ended(vm, task);
                    Report::TaskFinished {
                        vm,
                        task,
                        attempt,
                        verified: true,
                        reported: false,
                        program_failed: false,
                        result: None,
                        real_cpu_us: 0,
                    }
                }
                WorkEvent::Checkpointed { task, attempt, done, memory } => {
                    let done =
                        self.saves.saved_work(vm, task, attempt).map_or(done, |it| it.min(done));
                    Report::CheckpointTaken {
                        vm,
                        task,
                        attempt,
                        checkpoint: next_of(&mut self.checkpoints, task),
                        done,
                        bytes: memory,
                        real_held_us: 0,
                        real_dump_us: 0,
                        real_owed_us: 0,
                        held_at: None,
                        real_criu_us: 0,
                    }
                }
                // They may have turned before now, on a VM that nobody had used: what is said is
                // what it has.
                WorkEvent::CreditsTurned(then) => {
                    let balance = model.machine().credits().unwrap_or(then);
                    Report::Credits { vm, balance, as_of: None }
                }
            };
            out.push_back((*host, report));
        }
        self.after_change(vm, out);
    }

    /// Carries out a request for a checkpoint or a stop that waited until the program had saved its work.
    fn do_put_off(
        &mut self,
        now: Time,
        place: AttemptPlace,
        request: SaveRequest,
        out: &mut Reports,
    ) {
        let AttemptPlace { host, vm, task, attempt } = place;
        match request {
            SaveRequest::Checkpoint => {
                self.change_vm(vm, out, |model| model.checkpoint_task(now, task, attempt));
            }
            SaveRequest::Stop => self.stop_task(now, (host, vm), task, attempt, true, out),
        }
    }

    /// Gives a program notice that its VM will be preempted: the program saves its work from now until `until`, and computes
    /// meanwhile.
    fn give_notice(&mut self, now: Time, place: AttemptPlace, until: Time) {
        let AttemptPlace { vm, task, attempt, .. } = place;
        let Some(model) = self.model_of(vm) else { return };
        model.pass_until(now);
        let Some(progress) = model.task_progress(task, attempt) else { return };
        let done = progress.done.fraction_of(progress.runtime);
        self.saves.begin_save(place, until, done);
    }

    fn model_of(&mut self, vm: VmId) -> Option<&mut VmModel> {
        self.vms.get_mut(vm).map(|machine| &mut machine.1)
    }

    /// Changes the model of a VM by `change`, and reports the consequences.
    fn change_vm(
        &mut self,
        vm: VmId,
        out: &mut Reports,
        change: impl FnOnce(&mut VmModel) -> bool,
    ) {
        if let Some(model) = self.model_of(vm) {
            change(model);
            self.after_change(vm, out);
        }
    }

    /// Reports the credits of a burstable VM whose use changed, and updates its next event.
    fn after_change(&mut self, vm: VmId, out: &mut Reports) {
        let Some((host, model)) = self.vms.get(vm).map(Box::as_ref) else { return };
        if let Some(balance) = model.machine().credits() {
            out.push_back((*host, Report::Credits { vm, balance, as_of: None }));
        }
        // A task that ends has another begin on its VM at once.
        if self.touched.last() != Some(&vm) {
            self.touched.push(vm);
        }
    }

    fn start_task(&mut self, now: Time, start: TaskStart, out: &mut Reports) {
        let TaskStart { host, task, attempt, .. } = start;
        let Seats { vm, tier, cpus } = start.seats;
        let Some(model) = self.model_of(vm) else { return };
        let done = start.from.map(|(_, done)| done).unwrap_or_default();
        let work = ModelTask {
            task,
            attempt,
            memory: start.memory,
            runtime: start.runtime,
            done,
            mode: start.mode,
            on: cpus,
            tier,
            usage: start.job.as_ref().map_or(Usage::FULL, |job| job.usage.clone()),
            checkpoints: start.checkpoints,
            checkpoint_cost: start.checkpoint_cost,
            hold: CheckpointHold::WhenDue,
        };
        match model.start_task(now, work) {
            // That a parallel job runs at once is not worth a word, unless it is checkpointed: with
            // which checkpoint it began, and that others can be taken.
            Ok(()) if start.job.is_some() && start.checkpoint_cost == Span::ZERO => {}
            Ok(()) => {
                let report = Report::TaskStarted {
                    vm,
                    task,
                    attempt,
                    done,
                    real_took_us: 0,
                    real_inputs_us: 0,
                };
                out.push_back((host, report));
            }
            Err(no) => {
                let why = no.to_string();
                let report = Report::TaskFailed {
                    vm,
                    task,
                    attempt,
                    why,
                    real_cpu_us: 0,
                    could_not_restore: false,
                };
                out.push_back((host, report));
            }
        }
        self.after_change(vm, out);
    }

    /// Stops a task at once. A model needs no time for the checkpoint: the policies modelled here stop tasks of
    /// running VMs only to migrate them, and the migration's cost covers it.
    fn stop_task(
        &mut self,
        now: Time,
        (host, vm): (HostId, VmId),
        task: TaskId,
        attempt: Attempt,
        keep: bool,
        out: &mut Reports,
    ) {
        let Some(done) = self.model_of(vm).and_then(|model| model.stop_task(now, task, attempt))
        else {
            return;
        };
        let done = self.saves.saved_work(vm, task, attempt).map_or(done, |saved| saved.min(done));
        self.saves.attempt_ended(vm, task);
        let kept = keep.then(|| (next_of(&mut self.checkpoints, task), done));
        out.push_back((host, Report::TaskStopped { vm, task, attempt, kept, real_cpu_us: 0 }));
        self.after_change(vm, out);
    }
}

/// Increments the number of a task's checkpoints, and returns it as the number of the next one.
fn next_of(checkpoints: &mut BTreeMap<TaskId, CheckpointSeq>, task: TaskId) -> CheckpointSeq {
    let seq = checkpoints.entry(task).or_default();
    *seq = seq.next();
    *seq
}

/// Converts a type's burstable terms to the specification of its credit bucket.
#[must_use]
pub const fn credit_spec(b: BurstableTerms) -> CreditSpec {
    CreditSpec {
        baseline: b.baseline,
        earned_per_hour: b.earned_per_hour,
        initial: b.initial,
        cap: b.cap,
    }
}
