//! Checkpoints of running tasks: when, and what follows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{CheckpointFailed, CheckpointRef, CheckpointTaken, report};
use dormouse_units::Span;
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};

use super::{
    attempt::{Key, Pending, Phase},
    owner::{Message, Owner},
};
use crate::{
    agent::{
        launch::Place,
        report::{micros, report, task},
        snapshot::{self, Snapshot, SnapshotError, Then},
        transfer,
    },
    store::Checkpoint,
};

/// A task's progress is never looked at more often than this.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);

impl Owner {
    /// Looks how far a task is: a checkpoint is due, or when to look again.
    ///
    /// At its quota a task does a known amount of work in a known time, so one look at
    /// the expected moment and perhaps a few short ones after it are all there is.
    pub(crate) fn look(&mut self, key: Key) {
        let quota = self.attempts.iter().find(|a| a.key == key).map(|a| self.quota_of(a));
        let able = self.host.checkpointer.is_some();
        let Some((attempt, quota)) = self.attempt(key).zip(quota) else { return };
        attempt.look = None;
        let waits = attempt.pending.is_some() || attempt.dump_asked || attempt.stop.is_some();
        if !able || waits || !matches!(attempt.phase, Phase::Running) {
            return;
        }
        let Some(&due) = attempt.dues.front() else { return };
        let done = attempt.done_ppm();
        if done >= due {
            self.ask_for_dump(key);
        } else {
            let cpu_us = u64::from(due - done) * attempt.order.cpu_us / 1_000_000;
            let real_us = cpu_us.saturating_mul(1_000_000) / u64::from(quota.max(1));
            let wait = Duration::from_micros(real_us).max(SHORTEST_LOOK);
            attempt.look = Some(Instant::now() + wait);
        }
    }

    /// Speeds have changed.
    pub(crate) fn look_again(&mut self) {
        let keys: Vec<Key> = self.attempts.iter().map(|a| a.key).collect();
        for key in keys {
            self.look(key);
        }
    }

    /// Queues for CRIU. The task runs on until its turn: a host that is busy makes a checkpoint
    /// later, and never longer.
    pub(crate) fn ask_for_dump(&mut self, key: Key) {
        let criu = Arc::clone(&self.host.criu);
        let tell = self.tell.clone();
        let Some(attempt) = self.attempt(key) else { return };
        if std::mem::replace(&mut attempt.dump_asked, true) {
            return;
        }
        tokio::spawn(async move {
            // It is never closed.
            if let Ok(permit) = criu.acquire_owned().await {
                let _ = tell.send(Message::DumpTurn(key, permit));
            }
        });
    }

    pub(crate) fn dump_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        let frozen = self.machine.is_frozen();
        let hurry = self.is_waited_for();
        let hold = self.host.hold_checkpoints;
        let groups = Arc::clone(&self.groups);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.dump_asked = false;
        if !matches!(attempt.phase, Phase::Running) {
            return;
        }
        let stopping = attempt.stop.is_some();
        if frozen && stopping {
            return self.kill(key);
        }
        if frozen || (hurry && !stopping) {
            // After the thaw.
            attempt.look = Some(Instant::now() + SHORTEST_LOOK);
            return;
        }
        let Some(process) = attempt.process.clone() else { return };
        let (page, name) = (attempt.page.clone(), attempt.name.clone());
        let place = Place { groups, cpu: attempt.cpu, slot: attempt.slot };
        attempt.phase = Phase::Dumping { since: Instant::now() };
        attempt.dues.pop_front();
        let then = match (stopping, hold) {
            (true, _) => Then::Die,
            (false, true) => Then::Stand,
            (false, false) => Then::Run,
        };
        let cpu = attempt.cpu;
        self.pass();
        self.machine.change(key.0, key.1, |seat| seat.held = true);
        self.refresh(cpu);
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        let taking = spawn_blocking(move || {
            let pages = (&*process, page.as_deref());
            let result = snapshot::take(&host, &place, &name, key.1, pages, then);
            drop(permit);
            result
        });
        tokio::spawn(async move {
            let result = taking.await.unwrap_or_else(|panic| {
                Err(SnapshotError { why: panic.to_string(), damaging: true, ended: false })
            });
            let _ = tell.send(Message::Dumped(key, result));
        });
    }

    pub(crate) fn dumped(&mut self, key: Key, result: Result<Snapshot, SnapshotError>) {
        match result {
            Ok(snapshot) => self.snapshot_taken(key, snapshot),
            Err(error) => self.snapshot_failed(key, error),
        }
    }

    fn snapshot_taken(&mut self, key: Key, snapshot: Snapshot) {
        let hold = self.host.hold_checkpoints;
        let cost =
            self.attempt(key).map_or(Span::ZERO, |a| Span::from_micros(a.order.checkpoint_cost_us));
        let cost = if hold { self.host.real(cost) } else { Duration::ZERO };
        let Some(attempt) = self.attempt(key) else { return };
        let since = match attempt.phase {
            Phase::Dumping { since } => since,
            _ => snapshot.began,
        };
        let number = u32::try_from(snapshot.checkpoint.manifest().sequence).unwrap_or(u32::MAX);
        attempt.pending = Some(Pending {
            number,
            ppm: snapshot.ppm,
            began: since,
            dump: snapshot.dump,
            held: (!hold).then_some(snapshot.dump),
            stored: None,
        });
        attempt.phase = Phase::Held { until: since + cost };
        let (cpu, stopping) = (attempt.cpu, attempt.stop.is_some());
        self.upload(key, number, snapshot.checkpoint);
        if stopping {
            self.kill(key);
            // CRIU killed it, and that was put off.
            return self.process_ended(key);
        }
        self.refresh(cpu);
        if since + cost <= Instant::now() {
            self.let_go(key);
        }
    }

    fn snapshot_failed(&mut self, key: Key, error: SnapshotError) {
        if !error.ended {
            self.host.report(report(report::Report::CheckpointFailed(CheckpointFailed {
                task: task(self.id, key.0.get(), key.1.get()),
                why: error.why.clone(),
            })));
        }
        self.machine.change(key.0, key.1, |seat| seat.held = false);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.phase = Phase::Running;
        let cpu = attempt.cpu;
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

    /// The checkpoint has cost its time: the task runs on.
    pub(crate) fn let_go(&mut self, key: Key) {
        self.machine.change(key.0, key.1, |seat| seat.held = false);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.phase = Phase::Running;
        if let Some(pending) = &mut attempt.pending {
            pending.held.get_or_insert(pending.began.elapsed());
        }
        let (cpu, process) = (attempt.cpu, attempt.process.clone());
        self.pass();
        self.refresh(cpu);
        if let Some(process) = process {
            snapshot::resume(&process);
        }
        self.settle_checkpoint(key);
        // Its end, if it came during the dump, was put off.
        self.process_ended(key);
    }

    fn upload(&self, key: Key, number: u32, checkpoint: Checkpoint) {
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        let (run, task, attempt) = (host.run.clone(), key.0.get(), key.1.get());
        tokio::spawn(async move {
            let reference = CheckpointRef { run, task, checkpoint: number, attempt };
            let result = transfer::put(&host, reference, checkpoint).await;
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
    fn settle_checkpoint(&mut self, key: Key) {
        let id = self.id;
        let Some(attempt) = self.attempt(key) else { return };
        let settled = |p: &Pending| p.held.is_some() && p.stored.is_some();
        if !attempt.pending.as_ref().is_some_and(settled) {
            return;
        }
        let whose = task(id, key.0.get(), key.1.get());
        let Some(Pending { number, ppm, dump, held: Some(held), stored: Some(stored), .. }) =
            attempt.pending.take()
        else {
            return;
        };
        self.host.report(report(match stored {
            Ok(bytes) => report::Report::CheckpointTaken(CheckpointTaken {
                task: whose,
                checkpoint: number,
                done_ppm: ppm,
                bytes,
                held_us: micros(held),
                dump_us: micros(dump),
            }),
            Err(why) => report::Report::CheckpointFailed(CheckpointFailed { task: whose, why }),
        }));
        self.look(key);
    }
}
