//! Starting tasks: what they are, and where they are to be.

use std::time::Duration;

use dormouse_proto::v1::{Mode as WireMode, Seats, StartTask, TaskRef, Tier as WireTier};
use dormouse_units::{Attempt as AttemptNumber, Bytes, Mode, Ppm, Span, TaskId, Tier, Time, Usage};
use dormouse_vm::{
    Hold, Work,
    life::{Event, Key, Kind, Start},
};
use dormouse_worker::agent::in_process::{CommandStamp, refused};
use tokio_util::sync::CancellationToken;

use super::{
    attempt::{Attempt, Process},
    owner::Owner,
};
use crate::worker::uplink::Uplink;

impl<U: Uplink> Owner<U> {
    pub(super) fn start(&mut self, order: StartTask, asked: &CommandStamp) {
        if let Err(why) = self.seat(&order, asked) {
            self.host.report(refused(&order, why));
        }
    }

    fn seat(&mut self, order: &StartTask, asked: &CommandStamp) -> Result<(), String> {
        if self.lives.is_frozen() {
            return Err("the VM is frozen".to_owned());
        }
        let key = key_of(order.task);
        if self.seen(key).is_some() {
            return Err("this attempt is here already".to_owned());
        }
        if order.own.is_some() {
            return Err("the simulator runs no programs of users' own".to_owned());
        }
        let seats = order.seats.clone().unwrap_or_default();
        let tier = match seats.tier() {
            WireTier::Foreground => Tier::Foreground,
            WireTier::Background => Tier::Background,
        };
        if tier == Tier::Background && !self.two_tier {
            return Err("the VM's vCPUs have no background".to_owned());
        }
        let (attempt, kind) = match &order.plan {
            None => (self.seat_task(key, order, (&seats, tier), asked)?, Kind::Task),
            Some(plan) => (self.seat_job(key, (order, plan), (&seats, tier), asked)?, Kind::Job),
        };
        let on = attempt.on.clone();
        self.attempts.push(attempt);
        self.happen(Event::Start(Start { key, kind, on, tier }));
        Ok(())
    }

    /// Gives a task its seat in the model.
    fn seat_task(
        &mut self,
        key: Key,
        order: &StartTask,
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<Attempt, String> {
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
            checkpoints: order.checkpoints_ppm.iter().map(|&due| Ppm::new(due)).collect(),
            checkpoint_cost: Span::from_micros(order.emulated_checkpoint_cost_us),
            hold: Hold::WhenTold,
        };
        let now = self.pass();
        let began = self.clock.decided(asked);
        self.model.start(now.max(began), work).map_err(|e| e.to_string())?;
        let on = self.model.on(key.0, key.1).and_then(|on| on.first());
        let cpu = on.copied().unwrap_or_default();
        if let Err(why) = self.others_on(&[cpu], false) {
            self.model.stop(now, key.0, key.1);
            return Err(why);
        }
        self.model.head_start(key.0, key.1, now.since(began));
        Ok(self.new_attempt(key, order, vec![cpu], (began, asked)))
    }

    pub(super) fn new_attempt(
        &self,
        key: Key,
        order: &StartTask,
        on: Vec<u32>,
        (began, asked): (Time, &CommandStamp),
    ) -> Attempt {
        Attempt {
            key,
            order: order.clone(),
            on,
            job: None,
            from: Ppm::new(order.from.map_or(0, |kept| kept.done_ppm)),
            asked: asked.decided(),
            began,
            skipped: self.clock.skipped(),
            process: Process::None,
            image: None,
            stood: Duration::ZERO,
            standing: None,
            frozen: Duration::ZERO,
            missed_checkpoints: 0,
            due: None,
            permit: None,
            snapshot: None,
            pending: None,
            ends_early: None,
            ends_late: Duration::ZERO,
            fails: false,
            result: None,
            promised: None,
            after: None,
            final_done: None,
            is_killed: false,
            revoked: CancellationToken::new(),
            waits_for_thaw: false,
        }
    }

    /// Names an attempt in the words of the wire.
    pub(super) fn task(&self, (task, attempt): Key) -> Option<TaskRef> {
        Some(TaskRef { vm: self.id, task: task.get(), attempt: attempt.get() })
    }
}

/// The attempt that a command is about.
pub(super) fn key_of(task: Option<TaskRef>) -> Key {
    let TaskRef { task, attempt, .. } = task.unwrap_or_default();
    (TaskId::new(task), AttemptNumber::new(attempt))
}

pub(super) const fn mode(mode: WireMode) -> Mode {
    match mode {
        WireMode::Burst => Mode::Burst,
        WireMode::Baseline => Mode::Baseline,
    }
}
