//! Checkpoints of attempts that run: when, and what follows.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{CheckpointFailed, CheckpointTaken, TaskRef, report};
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::life::{Dumped, Event, Key, Phase};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    agenda::Work,
    attempt::{Pending, Process, Snapshot},
    launches::micros,
    owner::{Message, Owner},
    starts::key_of,
};
use crate::worker::uplink::Uplink;

/// How long CRIU takes to get hold of a process, and to dump it, usually.
const SEIZE: Duration = Duration::from_millis(2);
const DUMP: Duration = Duration::from_millis(20);

impl<U: Uplink> Owner<U> {
    /// The model says that a checkpoint is due.
    pub(super) fn checkpoint_is_due(&mut self, key: Key, done: Ppm) {
        if let Some(attempt) = self.attempt(key) {
            attempt.due = Some(done);
            self.happen(Event::CheckpointDue(key));
        }
    }

    /// A checkpoint is wanted now, whatever was planned.
    pub(super) fn checkpoint_now(&mut self, task: TaskRef) {
        let key = key_of(Some(task));
        self.pass();
        self.pace_now();
        let done = match self.what_is_done(key) {
            Ok(done) => done,
            Err(why) => return self.say_no_checkpoint(key, why.to_owned()),
        };
        // The one that is being taken, or waits for CRIU's turn, will do.
        if !self.lives.is_being_checkpointed(key) {
            self.checkpoint_is_due(key, done);
        }
    }

    fn what_is_done(&self, key: Key) -> Result<Ppm, &'static str> {
        let attempt = self.seen(key).ok_or("this attempt is not here")?;
        let runs = matches!(self.lives.phase(key), Some(Phase::Running | Phase::Dumping))
            && !self.lives.is_stopped(key);
        if attempt.job.is_some() {
            let done = self.pace.part_done(key).filter(|_| runs);
            return done.map(Ppm::new).ok_or("it does not run");
        }
        let progress = self.model.progress(key.0, key.1).filter(|_| runs);
        progress.map(|p| p.done.fraction_of(p.runtime)).ok_or("it does not run")
    }

    /// A checkpoint that is not taken any more costs its time all the same.
    pub(super) fn miss_checkpoint(&mut self, key: Key) {
        let now = self.pass();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.missed_checkpoints += 1;
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        if self.host.hold_checkpoints {
            self.model.hold(now, key.0, key.1, cost);
        }
    }

    pub(super) fn take_dump_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        if let Some(attempt) = self.attempt(key) {
            attempt.permit = Some(permit);
        }
        self.happen(Event::Turn(key));
    }

    /// Takes a checkpoint at the place at CRIU that it has.
    pub(super) fn dump(&mut self, key: Key, stopping: bool) {
        let now = self.pass();
        let hold = self.host.hold_checkpoints && !stopping;
        let takes = self.chance.time(SEIZE);
        let Some(attempt) = self.attempt(key) else { return };
        let Some(permit) = attempt.permit.take() else { return };
        if stopping {
            // It keeps all that it has done.
            attempt.due = None;
        }
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        if hold {
            self.model.hold(now, key.0, key.1, cost);
            self.hold_job(key);
        }
        self.agenda.add(takes, Work::Seize(key, permit));
    }

    /// CRIU takes hold of a process, unless its VM freezes or it has ended.
    pub(super) fn seize(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        let (shut, takes) = (self.is_shut, self.chance.time(DUMP) + self.host.slower());
        let Some(attempt) = self.attempt(key) else { return };
        let dumped = match attempt.process {
            _ if shut => Dumped::Overtaken,
            Process::Alive => {
                attempt.process = Process::Still;
                attempt.standing = Some(Instant::now());
                self.held += 1;
                return self.agenda.add(takes, Work::Dump(key, permit));
            }
            _ => {
                let why = "it has ended".to_owned();
                Dumped::Failed { why, damaged: false, ended: true }
            }
        };
        drop(permit);
        self.happen(Event::Dumped(key, dumped));
    }

    /// CRIU lets go of a process.
    pub(super) fn dumped(&mut self, key: Key) {
        self.held = self.held.saturating_sub(1);
        self.pass();
        let rates = self.host.plan.rates;
        self.pace_now();
        let damaged = self.chance.happens(rates.damage);
        let fails = damaged || self.chance.happens(rates.dump);
        let done = self.done(key);
        let Some(attempt) = self.attempt(key) else { return };
        let stopped_at = attempt.standing.unwrap_or_else(Instant::now);
        let done = attempt.due.map_or(done, |due| due.min(done));
        let kept = match fails {
            true => Err("CRIU failed".to_owned()),
            false => self.host.images.keep(key, done),
        };
        let Some(attempt) = self.attempt(key) else { return };
        let dumped = match kept {
            Ok(image) => {
                attempt.snapshot = Some(Snapshot { image, stopped_at, dump: stopped_at.elapsed() });
                self.host.witness().checkpoint_made(image);
                Dumped::Kept { number: image.number.get() }
            }
            Err(why) => {
                attempt.process = Process::Alive;
                Dumped::Failed { why, damaged, ended: false }
            }
        };
        self.happen(Event::Dumped(key, dumped));
    }

    /// Sends a checkpoint to the coordinator.
    pub(super) fn store(&mut self, key: Key) {
        let (host, tell, gone) = (Arc::clone(&self.host), self.tell.clone(), self.gone.clone());
        let Some(attempt) = self.attempt(key) else { return };
        let Some(Snapshot { image, stopped_at, dump }) = attempt.snapshot.take() else { return };
        let held_at = attempt.job.as_mut().and_then(|job| job.held_at.take());
        attempt.pending = Some(Pending {
            image,
            held_at,
            stopped_at,
            dump,
            owed: None,
            held: None,
            stored: Err("it is not known whether it is stored".to_owned()),
        });
        let shared = Arc::clone(&host.shared);
        shared.spawn(async move {
            let stored = tokio::select! {
                biased;
                () = gone.cancelled() => return,
                stored = host.images.put(&image) => stored,
            };
            // The owner is gone only when the VM is.
            let _ = tell.send(Message::Stored(key, image.number.get(), stored));
        });
    }

    /// The task goes on after its dump as it is promised.
    pub(super) fn go_on_after_dump(&mut self, key: Key) {
        if !self.job_stands(key) {
            self.perhaps_go_on(key);
        }
    }

    /// A task that has stood still for its checkpoint for as long as it had to goes on.
    pub(super) fn perhaps_go_on(&mut self, key: Key) {
        if self.lives.is_frozen() || !self.lives.is_running(key) || self.job(key).is_some() {
            return;
        }
        let hold = self.model.progress(key.0, key.1).and_then(|progress| progress.hold);
        let left = hold.map(|hold| self.host.speedup.real(hold));
        let Some(attempt) = self.attempt(key).filter(|attempt| attempt.is_kept()) else { return };
        if let Some(pending) = &mut attempt.pending {
            let longer = left.unwrap_or_default();
            pending.owed.get_or_insert_with(|| pending.stopped_at.elapsed() + longer);
            if left.is_some() {
                return;
            }
            pending.held = Some(pending.stopped_at.elapsed());
        }
        attempt.process = Process::Alive;
        attempt.stands_no_longer();
        self.happen(Event::GoesOn(key));
    }

    /// A freeze came before CRIU did.
    pub(super) fn release(&mut self, key: Key) {
        let now = self.pass();
        self.model.release(now, key.0, key.1);
        self.release_job(key);
        if let Some(attempt) = self.attempt(key) {
            attempt.stands_no_longer();
        }
    }

    /// There is no checkpoint. Nothing is missing where the task had ended before.
    pub(super) fn not_kept(&mut self, key: Key, why: Option<String>) {
        let now = self.pass();
        let stopping = self.lives.is_stopped(key);
        let ended = why.is_none();
        if let Some(why) = why {
            self.say_no_checkpoint(key, why);
            self.model.release(now, key.0, key.1);
            self.release_job(key);
        }
        if let Some(attempt) = self.attempt(key) {
            attempt.missed_checkpoints += u32::from(ended && !stopping);
            attempt.stands_no_longer();
        }
    }

    fn say_no_checkpoint(&self, key: Key, why: String) {
        let failed = CheckpointFailed { task: self.task(key), why };
        self.say(report::Report::CheckpointFailed(failed));
    }

    pub(super) fn hear_stored(&mut self, key: Key, number: u32, result: Result<u64, String>) {
        let Some(attempt) = self.attempt(key) else { return };
        let Some(pending) = attempt.pending.as_mut() else { return };
        if pending.image.number.get() != number {
            return;
        }
        let ok = result.is_ok();
        pending.stored = result;
        self.happen(Event::Stored { key, number, ok });
    }

    /// Reports a checkpoint that is stored, or is not, and whose task runs again.
    pub(super) fn settled(&mut self, key: Key) {
        let task = self.task(key);
        let Some(pending) = self.attempt(key).and_then(|attempt| attempt.pending.take()) else {
            return;
        };
        let Pending { image, held_at, dump, owed, held, stored, .. } = pending;
        self.say(match stored {
            Ok(bytes) => report::Report::CheckpointTaken(CheckpointTaken {
                task,
                checkpoint: image.number.get(),
                done_ppm: image.done.get(),
                bytes,
                real_held_us: micros(held.unwrap_or_default()),
                real_dump_us: micros(dump),
                real_owed_us: micros(owed.unwrap_or_default()),
                real_criu_us: 0,
                emulated_held_at_us: held_at.map(Time::as_micros),
            }),
            Err(why) => report::Report::CheckpointFailed(CheckpointFailed { task, why }),
        });
    }
}
