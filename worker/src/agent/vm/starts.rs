//! Starting tasks.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{Mode as WireMode, StartTask, TaskStarted, Tier as WireTier, report};
use dormouse_units::{Bytes, Mode, Ppm, Span, Tier};
use dormouse_vm::{Hold, Ledger, Work};

use super::{
    attempt::{Attempt, Charges, Phase},
    clock::Asked,
    liveness::Liveness,
    owner::{Message, Owner},
};
use crate::{
    agent::{
        host::limit,
        launch::{self, Birth, Place},
        life::refused,
        report::{Key, explain, key, micros, report, task},
        threads::outcome,
        watch::watch,
    },
    cgroup::Slot,
    process::Task,
};

impl Owner {
    pub(crate) fn start(&mut self, order: StartTask, asked: &Asked) {
        if let Err(why) = self.seat(&order, asked) {
            self.host.report(refused(&order, why));
        }
    }

    fn seat(&mut self, order: &StartTask, asked: &Asked) -> Result<(), String> {
        if self.model.machine().is_frozen() {
            return Err("the VM is frozen".to_owned());
        }
        let key = key(order.task);
        if self.attempt(key).is_some() {
            return Err("this attempt is here already".to_owned());
        }
        let name = self.host.task_name(key.0).map_err(|e| explain(&e))?;
        let seats = order.seats.clone().unwrap_or_default();
        let tier = match seats.tier() {
            WireTier::Foreground => Tier::Foreground,
            WireTier::Background => Tier::Background,
        };
        let checkpoints = match &self.host.checkpointer {
            Some(_) => points(&order.checkpoints_ppm)?,
            None => Vec::new(),
        };
        let from_ppm = order.from.map_or(0, |kept| kept.done_ppm);
        let done = Ppm::new(from_ppm);
        let work = Work {
            task: key.0,
            attempt: key.1,
            memory: Bytes::new(order.memory_bytes),
            runtime: Span::from_micros(order.emulated_runtime_us),
            done,
            mode: mode(order.mode()),
            cpu: seats.vcpus.first().copied(),
            tier,
            checkpoints,
            checkpoint_cost: Span::from_micros(order.emulated_checkpoint_cost_us),
            hold: Hold::WhenTold,
        };
        let now = self.pass();
        let began = self.clock.decided(asked);
        // It may be due to begin some microseconds from now, as far as this clock can tell.
        let seat = self.model.start(now.max(began), &work).map_err(|e| explain(&e))?;
        self.model.head_start(key.0, key.1, now.since(began));
        let ledger = Ledger::new(order.real_cpu_us.saturating_mul(1000));
        self.attempts.push(Attempt {
            key,
            name,
            asked: asked.decided(),
            began,
            skipped: self.clock.skipped(),
            cpu: seat.cpu,
            slot: if tier == Tier::Foreground { Slot::A } else { Slot::B },
            share: self.host.core_share(order.real_cpu_us, order.emulated_runtime_us),
            order: order.clone(),
            from_ppm,
            phase: Phase::Waiting { until: Instant::now() + limit::KILL },
            process: None,
            page: None,
            charges: Charges::default(),
            came_with: ledger.part(done),
            ledger,
            times: Ppm::ONE,
            standing: None,
            stood: Duration::ZERO,
            frozen: Duration::ZERO,
            promised: None,
            after: None,
            final_promise: None,
            missed_checkpoints: 0,
            exempt: None,
            look: None,
            liveness: Liveness::default(),
            due: None,
            dump_asked: false,
            due_again: false,
            pending: None,
            stop: None,
            wrong: None,
            reported: false,
            pass: self.gate.pass(),
        });
        self.launch_if_free(key);
        Ok(())
    }

    /// Begins the launch unless somebody is still dying in the slot.
    pub(crate) fn launch_if_free(&mut self, key: Key) {
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        let (cpu, slot) = (attempt.cpu, attempt.slot);
        let occupied = |a: &Attempt| {
            a.key != key && a.cpu == cpu && a.slot == slot && (a.is_dying() || a.is_given_up())
        };
        if self.attempts.iter().any(occupied) {
            return;
        }
        let (groups, gate) = (Arc::clone(&self.groups), Arc::clone(&self.gate));
        let launching = launch::launch(
            Arc::clone(&self.host),
            Place { groups, gate, cpu, slot },
            attempt.pass.clone(),
            attempt.name.clone(),
            attempt.order.clone(),
        );
        let tell = self.tell.clone();
        if let Some(attempt) = self.attempt(key) {
            attempt.phase = Phase::Launching;
        }
        // Its quota is in force before its first instruction.
        self.refresh(cpu);
        tokio::spawn(async move {
            // The owner is gone only when the VM is.
            let _ = tell.send(Message::Launched(key, outcome(launching).await));
        });
    }

    pub(crate) fn slot_stays_occupied(&mut self, key: Key) {
        self.leave_model(key);
        if let Some(attempt) = self.remove(key) {
            let why = format!(
                "its slot is still occupied by a task that was killed {} ms ago",
                Duration::as_millis(&limit::KILL)
            );
            self.host.report(refused(&attempt.order, why));
        }
    }

    /// A launch has come to its end, which is nobody's business while the VM is frozen.
    pub(crate) fn hear_launched(&mut self, key: Key, result: Result<Birth, String>) {
        let given_up = self.attempt(key).is_some_and(|a| a.reported);
        if self.model.machine().is_frozen() && !given_up {
            self.held.push((key, result));
        } else {
            self.launched(key, result);
        }
    }

    /// Gives up the launch of an attempt whose end has been reported.
    pub(crate) fn give_up_launch(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        attempt.pass.revoke();
        if let Some(place) = self.held.iter().position(|(held, _)| *held == key) {
            let (_, result) = self.held.remove(place);
            self.launched(key, result);
        }
    }

    /// What a launch that was given up has brought to life all the same is killed.
    fn bury(&mut self, key: Key, result: Result<Birth, String>) {
        let Some(attempt) = self.attempt(key) else { return };
        match result {
            Ok(birth) => {
                let process = Arc::new(birth.process);
                attempt.process = Some(Arc::clone(&process));
                self.watch(key, &process);
                self.kill(key);
            }
            Err(_) => self.is_gone(key),
        }
    }

    pub(crate) fn launched(&mut self, key: Key, result: Result<Birth, String>) {
        let Some(attempt) = self.attempts.iter_mut().find(|a| a.key == key) else { return };
        if attempt.reported {
            return self.bury(key, result);
        }
        match result {
            Ok(birth) => {
                attempt.phase = Phase::Running;
                let born = birth.born_ns.saturating_sub(birth.base_ns);
                attempt.charges.base = birth.base_ns;
                match attempt.order.from {
                    None => attempt.charges.birth = born,
                    Some(_) => attempt.charges.criu = born,
                }
                let done = Ppm::new(birth.done_ppm);
                // An older checkpoint than the one that was wanted: there is more to do.
                let older =
                    std::mem::replace(&mut attempt.from_ppm, birth.done_ppm) != birth.done_ppm;
                // The image may hold more than counts: that is stood still for.
                attempt.came_with = attempt.ledger.come_with(done.max(birth.came_with));
                attempt.page = birth.page.map(Arc::new);
                let took = birth.at.saturating_duration_since(attempt.asked);
                let process = Arc::new(birth.process);
                attempt.process = Some(Arc::clone(&process));
                let cpu = attempt.cpu;
                self.host.report(report(report::Report::TaskStarted(TaskStarted {
                    task: task(self.id, key),
                    done_ppm: birth.done_ppm,
                    real_took_us: micros(took),
                })));
                if let Some(ended) = birth.ended {
                    return self.conclude(key, ended);
                }
                if older {
                    self.pass();
                    self.model.set_done(key.0, key.1, done);
                }
                self.refresh(cpu);
                self.watch(key, &process);
                self.report_credits();
                self.look(key);
                if let Some(stop) = self.attempt(key).and_then(|a| a.stop.take()) {
                    self.stop(stop);
                }
            }
            Err(why) => self.fail_attempt(key, why),
        }
    }

    /// Says when the process has ended.
    fn watch(&mut self, key: Key, process: &Arc<Task>) {
        let tell = self.tell.clone();
        let watched = watch(process, move || {
            let _ = tell.send(Message::Ended(key));
        });
        if let Err(error) = watched {
            // Out of descriptors: nobody would notice its end.
            self.fail(&error);
        }
    }
}

/// At which parts of its work a task is checkpointed.
fn points(ppm: &[u32]) -> Result<Vec<Ppm>, String> {
    if !ppm.is_sorted() || ppm.iter().any(|&due| due > Ppm::ONE.get()) {
        return Err(format!(
            "these are no parts of its work in their order, in millionths: {ppm:?}"
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
