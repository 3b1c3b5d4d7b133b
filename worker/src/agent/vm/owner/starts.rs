//! Starting tasks: checking their commands, and giving them seats.

use std::time::Duration;

use dormouse_proto::v1::{Mode as WireMode, Plan, Seats, StartTask, Tier as WireTier};
use dormouse_units::{Bytes, Mode, Ppm, Span, Tier, Usage};
use dormouse_vm::ideal::{self, MachineChange};
use dormouse_vm::{
    CheckpointHold, ModelTask, TaskLedger,
    life::{AttemptKind, AttemptStart, TierSlot, VmEvent},
};

use super::VmOwner;
use crate::agent::{
    life::refuse_start,
    own,
    report::{Key, attempt_key, explain_error},
    vm::{
        attempt::{AttemptNature, VmAttempt},
        clock::CommandStamp,
        job::JobState,
        liveness::TaskLiveness,
        task::{SlotCharges, TaskPromise},
    },
};

impl VmOwner {
    pub(crate) fn start_attempt(&mut self, order: StartTask, asked: &CommandStamp) {
        if let Err(why) = self.seat_attempt(&order, asked) {
            self.context.send_report(refuse_start(&order, why));
        }
    }

    fn seat_attempt(&mut self, order: &StartTask, asked: &CommandStamp) -> Result<(), String> {
        if self.is_frozen() {
            return Err("the VM is frozen".to_owned());
        }
        let key = attempt_key(order.task);
        if self.find_attempt(key).is_some() {
            return Err("this attempt is already on this worker".to_owned());
        }
        self.context.machine.check_order(order)?;
        let name = self.context.task_name(key.0).map_err(|e| explain_error(&e))?;
        let seats = order.seats.clone().unwrap_or_default();
        let tier = match seats.tier() {
            WireTier::Foreground => Tier::Foreground,
            WireTier::Background => Tier::Background,
        };
        if tier == Tier::Background && !self.two_tier {
            return Err("the VM's vCPUs have no background".to_owned());
        }
        let (on, nature, kind) = match &order.plan {
            None => {
                let (cpu, promise) = self.seat_task(key, order, (&seats, tier), asked)?;
                (vec![cpu], AttemptNature::Task(promise), AttemptKind::Task)
            }
            Some(plan) => {
                let job = self.seat_job(key, order, plan, (&seats, tier), asked)?;
                (seats.vcpus, AttemptNature::Job(Box::new(job)), AttemptKind::Job)
            }
        };
        self.remains.attempt_begins(key, name.clone());
        self.attempts.push(VmAttempt {
            key,
            name,
            order: order.clone(),
            from_ppm: order.from.map_or(0, |kept| kept.done_ppm),
            asked: asked.decided_at(),
            waited_for_inputs: Duration::ZERO,
            on: on.clone(),
            nature,
            process: None,
            page: None,
            standing: None,
            stood: Duration::ZERO,
            frozen: Duration::ZERO,
            missed_checkpoints: 0,
            exempt: Vec::new(),
            look: None,
            liveness: TaskLiveness::default(),
            due: None,
            pending: None,
            permit: None,
            born: None,
            snapshot: None,
            answer: None,
            own: order.own.as_ref().map(|_| Box::default()),
            own_end: None,
            last_save: None,
            is_killed: false,
            killed_before: 0,
            pass: self.gate.make_pass(),
        });
        self.apply_event(VmEvent::Start(AttemptStart { key, kind, on, tier }));
        Ok(())
    }

    /// Gives a task of one process a seat in the VM's model; returns the vCPU and the task's promise.
    fn seat_task(
        &mut self,
        key: Key,
        order: &StartTask,
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<(u32, TaskPromise), String> {
        let checkpoints =
            match self.context.keeps_checkpoints(order) && own::is_kept_while_it_runs(order) {
                true => checkpoint_points(&order.checkpoints_ppm)?,
                false => Vec::new(),
            };
        let done = Ppm::new(order.from.map_or(0, |kept| kept.done_ppm));
        let work = ModelTask {
            task: key.0,
            attempt: key.1,
            memory: Bytes::new(order.memory_bytes),
            runtime: Span::from_micros(order.emulated_runtime_us),
            done,
            mode: read_mode(order.mode()),
            on: seats.vcpus.first().copied().into_iter().collect(),
            tier,
            usage: Usage::FULL,
            checkpoints,
            checkpoint_cost: Span::from_micros(order.emulated_checkpoint_cost_us),
            hold: CheckpointHold::WhenTold,
        };
        let now = self.pass_time();
        let began = self.clock.note_decided(asked);
        // It may be due to begin some microseconds from now, as far as this clock can tell.
        self.model.start_task(now.max(began), work).map_err(|e| explain_error(&e))?;
        let on = self.model.task_cpus(key.0, key.1).and_then(|on| on.first());
        let cpu = on.copied().unwrap_or_default();
        if let Err(why) = self.others_on(&[cpu], false) {
            self.model.stop_task(now, key.0, key.1);
            return Err(why);
        }
        match self.context.machine.waits_for_inputs(order) {
            true => self.model.wait_for_release(now, key.0, key.1),
            false => self.model.head_start(key.0, key.1, now.since(began)),
        }
        let ledger = TaskLedger::new(order.real_cpu_us.saturating_mul(1000));
        let promise = TaskPromise {
            began,
            skipped: self.clock.hibernated_time(),
            slot: TierSlot::A,
            share: self.context.core_share(order.real_cpu_us, order.emulated_runtime_us),
            charges: SlotCharges::default(),
            came_with: ledger.part_of_work(done),
            ledger,
            times: Ppm::ONE,
            promised: None,
            after: None,
            final_promise: None,
        };
        Ok((cpu, promise))
    }

    /// Begins a job in the model that the VM's jobs are compared with; returns the job's state.
    fn seat_job(
        &mut self,
        key: Key,
        order: &StartTask,
        plan: &Plan,
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<JobState, String> {
        let on = &seats.vcpus;
        if self.core_ppm.is_none() {
            return Err(
                "it is a parallel job, but this VM has no share of a core for a vCPU".to_owned()
            );
        }
        if !self.lives.vm_slots().are_valid(on) {
            return Err(self.no_place(on));
        }
        let Some(program) = job_program(plan, on.len()) else {
            return Err(format!("its plan does not fit {} processes", on.len()));
        };
        self.others_on(on, true)?;
        let (at, on) = (self.pace.decided_time(asked), on.clone());
        let foreground = tier == Tier::Foreground;
        let mut points = match self.context.has_criu {
            true => checkpoint_points(&order.checkpoints_ppm)?,
            false => Vec::new(),
        };
        self.pace.apply_change(at, MachineChange::Start { key, program, on, foreground });
        let done = Ppm::new(order.from.map_or(0, |kept| kept.done_ppm));
        if done > Ppm::ZERO {
            self.pace.apply_change(at, MachineChange::HasDone(key, done.get()));
        }
        points.retain(|point| *point > done);
        points.reverse();
        Ok(JobState { points, ..JobState::default() })
    }

    /// Refuses to share vCPUs between single-process tasks and parallel jobs, as each has a model of its own. `jobs`: the vCPUs
    /// `on` are for a job.
    pub(crate) fn others_on(&self, on: &[u32], jobs: bool) -> Result<(), String> {
        let is_there = |a: &VmAttempt| !self.lives.is_dead(a.key);
        let other = self.attempts.iter().find(|a| {
            is_there(a)
                && a.parallel_job().is_some() != jobs
                && a.on.iter().any(|vcpu| on.contains(vcpu))
        });
        match other {
            Some(other) => Err(format!(
                "a parallel job can't share a vCPU with task {}, which has one process",
                other.key.0.get()
            )),
            None => Ok(()),
        }
    }

    /// Explains, for an error message, why a job can't run on the vCPUs `on`.
    pub(crate) fn no_place(&self, on: &[u32]) -> String {
        let last = self.vcpu_count().saturating_sub(1);
        let on = list_numbers(on);
        format!("[{on}] are no vCPUs for a job: there are 0 to {last}, each of them once")
    }
}

/// Formats numbers as a list, for a message.
fn list_numbers(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Converts a job's plan to the form that the VM's model needs; `None` if the plan isn't valid for `processes` processes.
fn job_program(plan: &Plan, processes: usize) -> Option<ideal::JobProgram> {
    let Plan { real_runtime_us, phases, usage_ppm: usage } = plan.clone();
    let runtime = Duration::from_micros(real_runtime_us);
    let is_plan = usage.len() == processes && phases > 0 && usage.iter().all(|u| *u > 0);
    is_plan.then_some(ideal::JobProgram { runtime, phases, usage })
}

/// Reads the fractions of a task's work at which the task takes checkpoints.
fn checkpoint_points(ppm: &[u32]) -> Result<Vec<Ppm>, String> {
    if !ppm.is_sorted() || ppm.iter().any(|&due| due > Ppm::ONE.get()) {
        return Err(format!(
            "these are not increasing shares of its work, in millionths: {}",
            list_numbers(ppm)
        ));
    }
    Ok(ppm.iter().map(|&due| Ppm::new(due)).collect())
}

pub(crate) fn read_mode(mode: WireMode) -> Mode {
    match mode {
        WireMode::Burst => Mode::Burst,
        WireMode::Baseline => Mode::Baseline,
    }
}
