//! Bringing attempts to life once their slots are free, and what comes of it.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{TaskStarted, report};
use dormouse_units::Ppm;

use super::{
    attempt::{Nature, Phase},
    job,
    owner::{Message, Owner},
};
use crate::{
    agent::{
        host::limit,
        launch::{self, Birth, Place},
        life::refused,
        report::{Key, micros, report, task},
        threads::outcome,
        watch::watch,
    },
    process::Task,
};

/// What has come to life.
#[derive(Debug)]
pub(crate) enum Born {
    Task(Birth),
    Job(job::Birth),
}

impl Born {
    pub(crate) fn process(self) -> Task {
        match self {
            Self::Task(birth) => birth.process,
            Self::Job(birth) => birth.process,
        }
    }
}

impl Owner {
    /// Begins the launch of every attempt whose slots are free.
    pub(crate) fn launch_ready(&mut self) {
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting { .. });
        let waiting = self.attempts.iter().filter(|a| waits(&a.phase)).map(|a| a.key);
        for key in waiting.collect::<Vec<_>>() {
            self.launch_if_free(key);
        }
        self.turn_meters();
    }

    fn launch_if_free(&mut self, key: Key) {
        let Some(attempt) = self.attempts.iter_mut().find(|a| a.key == key) else { return };
        if !self.slots.are_free(&attempt.on, attempt.tier) {
            return;
        }
        self.slots.take(key, &attempt.on, attempt.tier);
        attempt.phase = Phase::Launching;
        let seats = self.slots.of(key, &attempt.on);
        let (groups, gate) = (Arc::clone(&self.groups), Arc::clone(&self.gate));
        let (host, pass, name) =
            (Arc::clone(&self.host), attempt.pass.clone(), attempt.name.clone());
        let (cpu, order, tell) = (attempt.cpu(), attempt.order.clone(), self.tell.clone());
        match &mut attempt.nature {
            Nature::Task(promise) => {
                if let Some(seat) = seats.first() {
                    promise.slot = seat.slot;
                }
                let place = Place { groups, gate, cpu, slot: promise.slot };
                let launching = launch::launch(host, place, pass, name, order);
                tokio::spawn(async move {
                    let born = outcome(launching).await.map(Born::Task);
                    // The owner is gone only when the VM is.
                    let _ = tell.send(Message::Launched(key, born));
                });
            }
            Nature::Job(job) => {
                job.ledger.come(job::charged_ns(&groups, &seats));
                let order = job::Order {
                    key,
                    name,
                    args: order.program.unwrap_or_default().args,
                    groups,
                    lane: u32::try_from(self.lanes.len()).unwrap_or(u32::MAX),
                    seats,
                    restore: job.moving.as_ref().is_some_and(|moving| moving.lost.is_none()),
                };
                let launching = job::launch(host, pass, order);
                tokio::spawn(async move {
                    let born = outcome(launching).await.map(Born::Job);
                    let _ = tell.send(Message::Launched(key, born));
                });
            }
        }
        // Its quota is in force before its first instruction.
        self.refresh(cpu);
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
    pub(crate) fn hear_launched(&mut self, key: Key, result: Result<Born, String>) {
        let given_up = self.seen(key).is_some_and(|a| a.reported);
        if self.is_frozen() && !given_up {
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
    fn bury(&mut self, key: Key, result: Result<Born, String>) {
        let Some(attempt) = self.attempt(key) else { return };
        match result {
            Ok(born) => {
                let process = Arc::new(born.process());
                attempt.process = Some(Arc::clone(&process));
                self.watch(key, &process);
                self.kill(key);
            }
            Err(_) => self.is_gone(key),
        }
    }

    pub(crate) fn launched(&mut self, key: Key, result: Result<Born, String>) {
        let Some(attempt) = self.attempt(key) else { return };
        if attempt.reported {
            return self.bury(key, result);
        }
        match result {
            Ok(born) => {
                attempt.phase = Phase::Running;
                match born {
                    Born::Task(birth) => self.task_lives(key, birth),
                    Born::Job(birth) => self.job_lives(key, birth),
                }
                if let Some(stop) = self.attempt(key).and_then(|a| a.stop.take()) {
                    self.stop(stop);
                }
            }
            Err(why) => match attempt.job_mut().and_then(|job| job.moving.as_mut()) {
                // The checkpoint is of no use: it begins again where it should go on.
                Some(moving) if moving.lost.is_none() => {
                    moving.lost = Some(why);
                    attempt.phase = Phase::Waiting { until: None };
                    self.slots.leave(key);
                    self.launch_ready();
                }
                _ => self.fail_attempt(key, why),
            },
        }
    }

    fn task_lives(&mut self, key: Key, birth: Birth) {
        let id = self.id;
        let Some(attempt) = self.attempt(key) else { return };
        let born = birth.born_ns.saturating_sub(birth.base_ns);
        let restored = attempt.order.from.is_some();
        let done = Ppm::new(birth.done_ppm);
        if let Some(promise) = attempt.promise_mut() {
            promise.charges.base = birth.base_ns;
            match restored {
                false => promise.charges.birth = born,
                true => promise.charges.criu = born,
            }
            // The image may hold more than counts: that is stood still for.
            promise.came_with = promise.ledger.come_with(done.max(birth.came_with));
        }
        // An older checkpoint than the one that was wanted: there is more to do.
        let older = std::mem::replace(&mut attempt.from_ppm, birth.done_ppm) != birth.done_ppm;
        attempt.page = birth.page.map(Arc::new);
        let took = birth.at.saturating_duration_since(attempt.asked);
        let process = Arc::new(birth.process);
        attempt.process = Some(Arc::clone(&process));
        let cpu = attempt.cpu();
        self.host.report(report(report::Report::TaskStarted(TaskStarted {
            task: task(id, key),
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
    }

    /// Says when the process has ended.
    pub(crate) fn watch(&mut self, key: Key, process: &Arc<Task>) {
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
