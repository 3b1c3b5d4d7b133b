//! Checkpoints of running tasks: when, and what follows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{CheckpointFailed, CheckpointRef, CheckpointTaken, TaskRef, report};
use dormouse_units::{Ppm, Span, Time};
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};

use crate::{
    agent::{
        launch::Place,
        report::{Key, key, micros, report, task},
        snapshot::{self, Snapshot, SnapshotError},
        threads::outcome,
        vm::{
            attempt::{Attempt, Pending, Phase},
            owner::{Message, Owner},
        },
    },
    criu::AfterDump,
    store::Checkpoint,
};

impl Owner {
    /// The model says that a checkpoint is due.
    pub(crate) fn checkpoint_is_due(&mut self, key: Key, done: Ppm) {
        let now = self.pass();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.due = Some(done);
        match attempt.phase {
            Phase::Early { .. } => self.miss_checkpoint(now, key),
            Phase::Dying | Phase::Gone => {}
            _ if attempt.pending.is_some() || attempt.dump_asked => attempt.due_again = true,
            _ => self.ask_for_dump(key),
        }
    }

    /// A checkpoint is wanted now, whatever was planned.
    pub(crate) fn checkpoint_now(&mut self, of: TaskRef) {
        let key = key(Some(of));
        self.pass();
        let done = match self.what_is_done(key) {
            Ok(done) => done,
            Err(why) => return self.say_no_checkpoint(key, why.to_owned()),
        };
        // The one that is being taken, or waits for CRIU's turn, will do.
        let is_coming = |it: &Attempt| it.dump_asked || matches!(it.phase, Phase::Dumping);
        if self.seen(key).is_some_and(is_coming) {
            return;
        }
        self.checkpoint_is_due(key, done);
    }

    /// What of its work a checkpoint of an attempt is due to hold now; why there can be none.
    fn what_is_done(&self, key: Key) -> Result<Ppm, &'static str> {
        let attempt = self.seen(key).ok_or("this attempt is not here")?;
        if attempt.job().is_some() {
            return Err("a parallel job is checkpointed only to be moved");
        }
        if self.host.checkpointer.is_none() {
            return Err("this worker has no CRIU that works");
        }
        let runs = matches!(attempt.phase, Phase::Running | Phase::Dumping);
        let progress = self.model.progress(key.0, key.1).filter(|_| runs && attempt.stop.is_none());
        progress.map(|p| p.done.fraction_of(p.runtime)).ok_or("it does not run")
    }

    /// A checkpoint that is not taken any more costs its time all the same.
    pub(crate) fn miss_checkpoint(&mut self, now: Time, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        attempt.missed_checkpoints += 1;
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        if self.host.hold_checkpoints {
            self.model.hold(now, key.0, key.1, cost);
        }
    }

    /// Queues for CRIU. The task runs on until its turn.
    pub(crate) fn ask_for_dump(&mut self, key: Key) {
        let criu = Arc::clone(&self.host.criu);
        let tell = self.tell.clone();
        let Some(attempt) = self.attempt(key) else { return };
        if std::mem::replace(&mut attempt.dump_asked, true) {
            return;
        }
        attempt.due_again = false;
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(permit) = criu.acquire_owned().await {
                let _ = tell.send(Message::DumpTurn(key, permit));
            }
        });
    }

    pub(crate) fn dump_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        let frozen = self.is_frozen();
        let waited_for = self.is_waited_for();
        let (groups, gate) = (Arc::clone(&self.groups), Arc::clone(&self.gate));
        let Some(attempt) = self.attempt(key) else { return };
        let stopping = attempt.stop.is_some();
        if !std::mem::take(&mut attempt.dump_asked) || !matches!(attempt.phase, Phase::Running) {
            return;
        }
        if (frozen || waited_for) && stopping {
            return self.kill(key);
        }
        if frozen || waited_for {
            // After the thaw, which looks at it.
            attempt.due_again = true;
            attempt.look = Some(Instant::now());
            return;
        }
        let Some(process) = attempt.process.clone() else { return };
        let (page, name) = (attempt.page.clone(), attempt.name.clone());
        let cpu = attempt.cpu();
        let Some(slot) = attempt.promise().map(|promise| promise.slot) else { return };
        let place = Place { groups, gate, cpu, slot };
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        attempt.phase = Phase::Dumping;
        attempt.liveness.pause();
        // What it will hold beyond what was due is its wait for CRIU's turn: restored, the task
        // stands still for that. One that is stopped keeps all it has.
        let due = attempt.due.filter(|_| !stopping);
        let now = self.pass();
        if self.host.hold_checkpoints && !stopping {
            // From now on, whenever it was due: a busy host makes a checkpoint later, never longer.
            self.model.hold(now, key.0, key.1, cost);
        }
        self.refresh(cpu);
        let after = if stopping { AfterDump::Kill } else { AfterDump::Continue };
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        let taking = spawn_blocking(move || {
            let pages = (&*process, page.as_deref());
            let result = snapshot::take(&host, &place, &name, key.1, pages, due, after);
            drop(permit);
            result
        });
        tokio::spawn(async move {
            let result = taking.await.unwrap_or_else(|panic| {
                Err(SnapshotError { damaging: true, ..SnapshotError::new(panic.to_string()) })
            });
            let _ = tell.send(Message::Dumped(key, result));
        });
    }

    pub(crate) fn dumped(&mut self, key: Key, result: Result<Snapshot, SnapshotError>) {
        match result {
            Ok(snapshot) => self.snapshot_taken(key, snapshot),
            Err(error) if error.overtaken && !error.ended => self.overtaken(key),
            Err(error) => self.snapshot_failed(key, error),
        }
    }

    fn snapshot_taken(&mut self, key: Key, snapshot: Snapshot) {
        let Some(attempt) = self.attempt(key) else { return };
        let Snapshot { checkpoint, ppm, stopped_at, dump, foreign_ns } = snapshot;
        let number = u32::try_from(checkpoint.manifest().sequence).unwrap_or(u32::MAX);
        attempt.pending = Some(Pending {
            number,
            ppm,
            stopped_at,
            dump,
            criu: Duration::from_nanos(foreign_ns),
            owed: None,
            held: None,
            stored: None,
        });
        if let Some(promise) = attempt.promise_mut() {
            promise.charges.criu += foreign_ns;
        }
        attempt.standing.get_or_insert(stopped_at);
        attempt.phase = Phase::Running;
        let (cpu, stopping) = (attempt.cpu(), attempt.stop.is_some());
        self.upload(key, number, checkpoint);
        if stopping {
            self.kill(key);
            // CRIU killed it, and that was put off.
            return self.process_ended(key);
        }
        self.refresh(cpu);
        self.look(key);
    }

    /// A freeze came before CRIU did. The thaw asks for it again, if it is to be kept by then.
    fn overtaken(&mut self, key: Key) {
        let now = self.pass();
        self.model.release(now, key.0, key.1);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.phase = Phase::Running;
        attempt.stands_no_longer(Instant::now());
        if attempt.stop.is_some() {
            return self.kill(key);
        }
        attempt.due_again = true;
        attempt.look = Some(Instant::now());
        let cpu = attempt.cpu();
        self.refresh(cpu);
        // Its end, if it came meanwhile, was put off.
        self.process_ended(key);
    }

    fn snapshot_failed(&mut self, key: Key, error: SnapshotError) {
        if !error.ended {
            self.say_no_checkpoint(key, error.why.clone());
        }
        let now = self.pass();
        if !error.ended {
            self.model.release(now, key.0, key.1);
        }
        let Some(attempt) = self.attempt(key) else { return };
        attempt.missed_checkpoints += u32::from(error.ended && attempt.stop.is_none());
        attempt.phase = Phase::Running;
        attempt.stands_no_longer(Instant::now());
        let cpu = attempt.cpu();
        if error.damaging {
            attempt.wrong = Some(error.why);
            self.kill(key);
        } else if let Some(stop) = &mut attempt.stop {
            stop.keep = false;
            self.kill(key);
        } else {
            self.refresh(cpu);
            self.look(key);
        }
        // Its end, if it came during the dump, was put off.
        self.process_ended(key);
    }

    fn say_no_checkpoint(&self, key: Key, why: String) {
        let failed = CheckpointFailed { task: task(self.id, key), why };
        self.host.report(report(report::Report::CheckpointFailed(failed)));
    }

    fn upload(&self, key: Key, number: u32, checkpoint: Checkpoint) {
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        let (run, task, attempt) = (host.run.clone(), key.0.get(), key.1.get());
        tokio::spawn(async move {
            let reference = CheckpointRef { run, task, checkpoint: number, attempt };
            let put = async move { host.transfers.put(reference, checkpoint).await };
            let result = outcome(put).await;
            let _ = tell.send(Message::Stored(key, number, result));
        });
    }

    pub(crate) fn stored(&mut self, key: Key, number: u32, result: Result<u64, String>) {
        let Some(attempt) = self.attempt(key) else { return };
        let Some(pending) = attempt.pending.as_mut().filter(|p| p.number == number) else { return };
        pending.stored = Some(result);
        if matches!(attempt.phase, Phase::Dying | Phase::Gone) {
            self.settle_stop(key);
        } else {
            self.settle_checkpoint(key);
        }
    }

    /// Reports a checkpoint that is stored and whose task runs again.
    pub(crate) fn settle_checkpoint(&mut self, key: Key) {
        let id = self.id;
        let Some(attempt) = self.attempt(key) else { return };
        let settled = |p: &Pending| p.held.is_some() && p.stored.is_some();
        if !attempt.pending.as_ref().is_some_and(settled) {
            return;
        }
        let whose = task(id, key);
        let Some(Pending {
            number,
            ppm,
            dump,
            criu,
            owed,
            held: Some(held),
            stored: Some(stored),
            ..
        }) = attempt.pending.take()
        else {
            return;
        };
        let (again, attempt_due) = (std::mem::take(&mut attempt.due_again), attempt.due);
        self.host.report(report(match stored {
            Ok(bytes) => report::Report::CheckpointTaken(CheckpointTaken {
                task: whose,
                checkpoint: number,
                done_ppm: ppm,
                bytes,
                real_held_us: micros(held),
                real_dump_us: micros(dump),
                real_owed_us: micros(owed.unwrap_or_default()),
                real_criu_us: micros(criu),
            }),
            Err(why) => report::Report::CheckpointFailed(CheckpointFailed { task: whose, why }),
        }));
        if again && let Some(due) = attempt_due {
            self.checkpoint_is_due(key, due);
        }
    }
}
