//! Starting tasks: what they are, and where they are to be.

use std::time::Duration;

use dormouse_proto::v1::{Mode as WireMode, Plan, Seats, StartTask, Tier as WireTier};
use dormouse_units::{Bytes, Mode, Ppm, Span, Tier, Usage};
use dormouse_vm::ideal::{self, Change};
use dormouse_vm::{
    Hold, Ledger, Work,
    life::{Event, Kind, Slot, Start},
};

use super::Owner;
use crate::agent::{
    life::refused,
    own,
    report::{Key, explain, key},
    vm::{
        attempt::{Attempt, Nature},
        clock::CommandStamp,
        job::Job,
        liveness::Liveness,
        task::{Charges, Promise},
    },
};

impl Owner {
    pub(crate) fn start(&mut self, order: StartTask, asked: &CommandStamp) {
        if let Err(why) = self.seat(&order, asked) {
            self.context.report(refused(&order, why));
        }
    }

    fn seat(&mut self, order: &StartTask, asked: &CommandStamp) -> Result<(), String> {
        if self.is_frozen() {
            return Err("the VM is frozen".to_owned());
        }
        let key = key(order.task);
        if self.seen(key).is_some() {
            return Err("this attempt is already on this worker".to_owned());
        }
        self.context.machine.check_order(order)?;
        let name = self.context.task_name(key.0).map_err(|e| explain(&e))?;
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
                (vec![cpu], Nature::Task(promise), Kind::Task)
            }
            Some(plan) => {
                let job = self.seat_job(key, order, plan, (&seats, tier), asked)?;
                (seats.vcpus, Nature::Job(Box::new(job)), Kind::Job)
            }
        };
        self.remains.begins(key, name.clone());
        self.attempts.push(Attempt {
            key,
            name,
            order: order.clone(),
            from_ppm: order.from.map_or(0, |kept| kept.done_ppm),
            asked: asked.decided(),
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
            liveness: Liveness::default(),
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
            pass: self.gate.pass(),
        });
        self.happen(Event::Start(Start { key, kind, on, tier }));
        Ok(())
    }

    /// Gives a task of one process its seat in the model; its vCPU and what it is promised.
    fn seat_task(
        &mut self,
        key: Key,
        order: &StartTask,
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<(u32, Promise), String> {
        let checkpoints = match self.context.keeps(order) && own::is_kept_while_it_runs(order) {
            true => points(&order.checkpoints_ppm)?,
            false => Vec::new(),
        };
        let done = Ppm::new(order.from.map_or(0, |kept| kept.done_ppm));
        let work = Work {
            task: key.0,
            attempt: key.1,
            memory: Bytes::new(order.memory_bytes),
            runtime: Span::from_micros(order.emulated_runtime_us),
            done,
            mode: mode(order.mode()),
            on: seats.vcpus.first().copied().into_iter().collect(),
            tier,
            usage: Usage::FULL,
            checkpoints,
            checkpoint_cost: Span::from_micros(order.emulated_checkpoint_cost_us),
            hold: Hold::WhenTold,
        };
        let now = self.pass();
        let began = self.clock.decided(asked);
        // It may be due to begin some microseconds from now, as far as this clock can tell.
        self.model.start(now.max(began), work).map_err(|e| explain(&e))?;
        let on = self.model.on(key.0, key.1).and_then(|on| on.first());
        let cpu = on.copied().unwrap_or_default();
        if let Err(why) = self.others_on(&[cpu], false) {
            self.model.stop(now, key.0, key.1);
            return Err(why);
        }
        match self.context.machine.waits_for_inputs(order) {
            true => self.model.wait(now, key.0, key.1),
            false => self.model.head_start(key.0, key.1, now.since(began)),
        }
        let ledger = Ledger::new(order.real_cpu_us.saturating_mul(1000));
        let promise = Promise {
            began,
            skipped: self.clock.skipped(),
            slot: Slot::A,
            share: self.context.core_share(order.real_cpu_us, order.emulated_runtime_us),
            charges: Charges::default(),
            came_with: ledger.part(done),
            ledger,
            times: Ppm::ONE,
            promised: None,
            after: None,
            final_promise: None,
        };
        Ok((cpu, promise))
    }

    /// Has the reference begin with a job; what is particular to it.
    fn seat_job(
        &mut self,
        key: Key,
        order: &StartTask,
        plan: &Plan,
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<Job, String> {
        let on = &seats.vcpus;
        if self.core_ppm.is_none() {
            return Err(
                "it is a parallel job, but this VM has no share of a core for a vCPU".to_owned()
            );
        }
        if !self.lives.slots().are_valid(on) {
            return Err(self.no_place(on));
        }
        let Some(program) = program(plan, on.len()) else {
            return Err(format!("its plan does not fit {} processes", on.len()));
        };
        self.others_on(on, true)?;
        let (at, on) = (self.pace.decided(asked), on.clone());
        let foreground = tier == Tier::Foreground;
        let mut points = match self.context.has_criu {
            true => points(&order.checkpoints_ppm)?,
            false => Vec::new(),
        };
        self.pace.change(at, Change::Start { key, program, on, foreground });
        let done = Ppm::new(order.from.map_or(0, |kept| kept.done_ppm));
        if done > Ppm::ZERO {
            self.pace.change(at, Change::HasDone(key, done.get()));
        }
        points.retain(|point| *point > done);
        points.reverse();
        Ok(Job { points, ..Job::default() })
    }

    /// Refuses vCPUs on which there are tasks of the other kind: what one of these makes of a vCPU
    /// that it shares is not known to what the other is held to.
    pub(crate) fn others_on(&self, on: &[u32], jobs: bool) -> Result<(), String> {
        let is_there = |a: &Attempt| !self.lives.is_dead(a.key);
        let other = self.attempts.iter().find(|a| {
            is_there(a) && a.job().is_some() != jobs && a.on.iter().any(|vcpu| on.contains(vcpu))
        });
        match other {
            Some(other) => Err(format!(
                "a parallel job can't share a vCPU with task {}, which has one process",
                other.key.0.get()
            )),
            None => Ok(()),
        }
    }

    /// Why a job can't be on these vCPUs.
    pub(crate) fn no_place(&self, on: &[u32]) -> String {
        let last = self.vcpus().saturating_sub(1);
        let on = numbers(on);
        format!("[{on}] are no vCPUs for a job: there are 0 to {last}, each of them once")
    }
}

/// Numbers in a row, for a message.
fn numbers(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// A plan in the words of the reference, if it is one for so many processes.
fn program(plan: &Plan, processes: usize) -> Option<ideal::Program> {
    let Plan { real_runtime_us, phases, usage_ppm: usage } = plan.clone();
    let runtime = Duration::from_micros(real_runtime_us);
    let is_plan = usage.len() == processes && phases > 0 && usage.iter().all(|u| *u > 0);
    is_plan.then_some(ideal::Program { runtime, phases, usage })
}

/// At which parts of its work a task is checkpointed.
fn points(ppm: &[u32]) -> Result<Vec<Ppm>, String> {
    if !ppm.is_sorted() || ppm.iter().any(|&due| due > Ppm::ONE.get()) {
        return Err(format!(
            "these are not increasing shares of its work, in millionths: {}",
            numbers(ppm)
        ));
    }
    Ok(ppm.iter().map(|&due| Ppm::new(due)).collect())
}

pub(crate) fn mode(mode: WireMode) -> Mode {
    match mode {
        WireMode::Burst => Mode::Burst,
        WireMode::Baseline => Mode::Baseline,
    }
}
