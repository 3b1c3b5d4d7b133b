//! Starting tasks.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{Mode as WireMode, StartTask, TaskStarted, Tier as WireTier, report};
use dormouse_units::{Attempt as AttemptNo, Bytes, TaskId};
use dormouse_vm::{Mode, Tier};

use super::{
    attempt::{Attempt, Key, Phase},
    owner::{Message, Owner},
};
use crate::{
    agent::{
        host::limit,
        launch::{self, Birth, Place},
        life::refused,
        report::{explain, micros, report, task},
        watch::watch,
    },
    cgroup::Slot,
    process::Task,
};

impl Owner {
    pub(crate) fn start(&mut self, order: StartTask, asked: Instant) {
        if let Err(why) = self.seat(&order, asked) {
            self.host.report(refused(&order, why));
        }
    }

    fn seat(&mut self, order: &StartTask, asked: Instant) -> Result<(), String> {
        if self.machine.is_frozen() {
            return Err("the VM is frozen".to_owned());
        }
        let key = (TaskId::new(order.task), AttemptNo::new(order.attempt));
        if self.attempt(key).is_some() {
            return Err("this attempt is here already".to_owned());
        }
        let name = self.host.task_name(key.0).map_err(|e| explain(&e))?;
        let tier = match order.tier() {
            WireTier::Foreground => Tier::Foreground,
            WireTier::Background => Tier::Background,
        };
        self.pass();
        let memory = Bytes::new(order.memory_bytes);
        let seat = self
            .machine
            .seat(key.0, key.1, memory, mode(order.mode()), tier)
            .map_err(|e| explain(&e))?;
        self.attempts.push(Attempt {
            key,
            name,
            asked,
            cpu: seat.cpu,
            slot: if tier == Tier::Foreground { Slot::A } else { Slot::B },
            share: self.host.core_share(order.cpu_us, order.runtime_us),
            order: order.clone(),
            phase: Phase::Waiting { until: Instant::now() + limit::KILL },
            process: None,
            page: None,
            base_ns: 0,
            dues: Attempt::dues_after(order.checkpoints, order.done_ppm),
            look: None,
            dump_asked: false,
            pending: None,
            stop: None,
            wrong: None,
            reported: false,
        });
        self.launch_if_free(key);
        Ok(())
    }

    /// Begins the launch unless somebody is still dying in the slot.
    pub(crate) fn launch_if_free(&mut self, key: Key) {
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        let (cpu, slot) = (attempt.cpu, attempt.slot);
        let occupied = |a: &Attempt| {
            a.key != key && a.cpu == cpu && a.slot == slot && matches!(a.phase, Phase::Dying)
        };
        if self.attempts.iter().any(occupied) {
            return;
        }
        let place = Place { groups: Arc::clone(&self.groups), cpu, slot };
        let launching = launch::launch(
            Arc::clone(&self.host),
            place,
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
            let _ = tell.send(Message::Launched(key, launching.await));
        });
    }

    pub(crate) fn slot_stays_occupied(&mut self, key: Key) {
        self.machine.leave(key.0, key.1);
        if let Some(attempt) = self.remove(key) {
            let why = format!(
                "its slot is still occupied by a task that was killed {} ms ago",
                Duration::as_millis(&limit::KILL)
            );
            self.host.report(refused(&attempt.order, why));
        }
    }

    pub(crate) fn launched(&mut self, key: Key, result: Result<Birth, String>) {
        let Some(attempt) = self.attempts.iter_mut().find(|a| a.key == key) else { return };
        match result {
            Ok(birth) => {
                attempt.phase = Phase::Running;
                attempt.base_ns = birth.base_ns;
                attempt.order.done_ppm = birth.done_ppm;
                attempt.dues = Attempt::dues_after(attempt.order.checkpoints, birth.done_ppm);
                attempt.page = birth.page.map(Arc::new);
                let took = birth.at.saturating_duration_since(attempt.asked);
                let process = Arc::new(birth.process);
                attempt.process = Some(Arc::clone(&process));
                let cpu = attempt.cpu;
                self.host.report(report(report::Report::TaskStarted(TaskStarted {
                    task: task(self.id, key.0.get(), key.1.get()),
                    done_ppm: birth.done_ppm,
                    took_us: micros(took),
                })));
                if let Some(ended) = birth.ended {
                    return self.conclude(key, ended);
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

pub(crate) fn mode(mode: WireMode) -> Mode {
    match mode {
        WireMode::Burst => Mode::Burst,
        WireMode::Baseline => Mode::Baseline,
    }
}
