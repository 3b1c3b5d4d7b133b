//! Checkpoints of running attempts: when they are taken, and what follows.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_proto::v1::{CheckpointFailed, CheckpointRef, CheckpointTaken, TaskRef, report};
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::life::{AttemptPhase, DumpOutcome, VmEvent};
use tokio::time::Instant;

use super::VmOwner;
use crate::{
    agent::{
        machine::{
            AttemptDump, CheckpointUpload, CountedWork, DumpMoments, DumpWay, TakenCheckpoint,
        },
        own,
        report::{Key, attempt_key, make_report, task_ref, whole_micros},
        snapshot::SnapshotError,
        threads::await_outcome,
        vm::{
            attempt::{UnreportedCheckpoint, VmAttempt},
            last_save::DeferredRequest,
            message::OwnerMessage,
        },
    },
    criu::AfterDump,
};

impl VmOwner {
    /// Begins the checkpoint of an attempt that has, by the VM's model, reached the part `done` of its work.
    pub(crate) fn checkpoint_is_due(&mut self, key: Key, done: Ppm) {
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.due = Some(done);
            self.apply_event(VmEvent::CheckpointDue(key));
        }
    }

    /// Checkpoints an attempt now, whatever was planned.
    pub(crate) fn checkpoint_now(&mut self, of: TaskRef) {
        let key = attempt_key(Some(of));
        if self.put_off(key, DeferredRequest::Checkpoint(of)).is_none() {
            return;
        }
        self.pass_time();
        self.pace_now();
        let done = match self.what_is_done(key) {
            Ok(done) => done,
            Err(why) => return self.say_no_checkpoint(key, why.to_owned()),
        };
        // The one that is being taken, or waits for CRIU's turn, will do.
        if self.lives.is_being_checkpointed(key) {
            return;
        }
        self.checkpoint_is_due(key, done);
    }

    /// Returns the part of an attempt's work that should be done by now, for a checkpoint, or the reason why the attempt can't be
    /// checkpointed.
    fn what_is_done(&self, key: Key) -> Result<Ppm, &'static str> {
        let attempt = self.find_attempt(key).ok_or("this attempt is not on this worker")?;
        if !self.context.keeps_checkpoints(&attempt.order) {
            return Err("this worker has no working CRIU");
        }
        if attempt.last_save.is_none() && !own::is_kept_while_it_runs(&attempt.order) {
            return Err("its program has saved no state");
        }
        let runs = matches!(
            self.lives.attempt_phase(key),
            Some(AttemptPhase::Running | AttemptPhase::Dumping)
        ) && !self.lives.is_stopped(key);
        if attempt.parallel_job().is_some() {
            return self.job_done(key).filter(|_| runs).ok_or("it is not running");
        }
        let progress = self.model.task_progress(key.0, key.1).filter(|_| runs);
        let runtime = Span::from_micros(attempt.order.emulated_runtime_us);
        // All of it is done at its end alone, however long it takes.
        let most = Ppm::new(Ppm::ONE.get() - 1);
        let part = |done: Span| done.fraction_of(runtime).min(most);
        match &attempt.own {
            Some(_) => progress.map(|p| part(p.done)),
            None => progress.map(|p| p.done.fraction_of(p.runtime)),
        }
        .ok_or("it is not running")
    }

    /// Handles a checkpoint that won't be taken; the task is nevertheless stopped for as long as the checkpoint should
    /// take.
    pub(crate) fn miss_checkpoint(&mut self, now: Time, key: Key) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.missed_checkpoints += 1;
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        if self.context.hold_checkpoints {
            self.model.hold_task(now, key.0, key.1, cost);
        }
    }

    /// Dumps an attempt that has got its permit to use CRIU; `stopping`: the attempt doesn't run on after the dump.
    pub(crate) fn begin_dump(&mut self, key: Key, stopping: bool) {
        if self.find_attempt(key).is_some_and(|attempt| attempt.parallel_job().is_some()) {
            return self.dump_job(key, stopping);
        }
        self.meter_own(key);
        let Some(attempt) = self.attempt_mut(key) else { return };
        if attempt.own_end.is_some() {
            // What is in its slot is its check.
            attempt.permit = None;
            let why = "its program has ended".to_owned();
            let failed = DumpOutcome::Failed { why, damaged: false, ended: true };
            return self.apply_event(VmEvent::Dumped(key, failed));
        }
        let known = attempt.own.is_some().then(|| Ppm::new(attempt.done_ppm()));
        if let Some(own) = &mut attempt.own {
            own.pause_count();
        }
        if attempt.process.is_none() {
            return;
        }
        let cpu = attempt.first_cpu();
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        attempt.liveness.pause_watch();
        // What it will hold beyond what was due is its wait for CRIU's turn: restored, the task
        // stands still for that. One that is stopped keeps all it has.
        let due = match &attempt.last_save {
            Some(save) => Some(save.work_done()),
            None => attempt.due.filter(|_| !stopping),
        };
        let now = self.pass_time();
        if self.context.hold_checkpoints && !stopping {
            // From now on, whenever it was due: a busy host makes a checkpoint later, never longer.
            self.model.hold_task(now, key.0, key.1, cost);
        }
        self.refresh_quota(cpu);
        self.send_dump(key, CountedWork::Reported { attempt: key.1, due, known }, stopping);
    }

    /// Has the machine dump an attempt, which then ends (`stopping`) or continues.
    pub(crate) fn send_dump(&mut self, key: Key, counts: CountedWork, stopping: bool) {
        let Some(dump) = self.make_dump(key, stopping) else { return };
        let moments = DumpMoments::new(&self.gate, counts);
        let taking = Arc::clone(&self.machine).dump_attempt(dump, moments);
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let result = taking.await;
            // The owner is gone only when the VM is.
            let _ = tell.cast(OwnerMessage::Dumped(key, result));
        });
    }

    /// Makes the order to dump an attempt; `None`: the attempt has no process.
    pub(crate) fn make_dump(&mut self, key: Key, stopping: bool) -> Option<AttemptDump> {
        let seats = self.seats_of(key);
        let attempt = self.attempt_mut(key)?;
        let way = match attempt.parallel_job() {
            Some(_) => DumpWay::Job,
            None if attempt.own.is_none() => DumpWay::Task,
            None if own::is_saved_by_criu(&attempt.order) => DumpWay::Own,
            None => DumpWay::OwnDirectory,
        };
        Some(AttemptDump {
            name: attempt.name.clone(),
            way,
            seats,
            process: attempt.process.clone()?,
            ranks: attempt.parallel_job().map(|job| job.ranks.clone()).unwrap_or_default(),
            page: attempt.page.clone(),
            after: if stopping { AfterDump::Kill } else { AfterDump::Continue },
            permit: attempt.permit.take(),
        })
    }

    pub(crate) fn hear_dumped(&mut self, key: Key, result: Result<TakenCheckpoint, SnapshotError>) {
        self.job_is_as_it_was(key);
        let dumped = match result {
            Ok(snapshot) => {
                let number = snapshot.number;
                if let Some(attempt) = self.attempt_mut(key) {
                    attempt.snapshot = Some(snapshot);
                }
                DumpOutcome::Kept { number }
            }
            Err(error) if error.overtaken && !error.ended => DumpOutcome::Overtaken,
            Err(SnapshotError { why, damaging, ended, .. }) => {
                DumpOutcome::Failed { why, damaged: damaging, ended }
            }
        };
        self.apply_event(VmEvent::Dumped(key, dumped));
    }

    /// Sends an attempt's taken checkpoint to the coordinator.
    pub(crate) fn store_checkpoint(&mut self, key: Key) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        let Some(snapshot) = attempt.snapshot.take() else { return };
        let TakenCheckpoint { number, ppm, bytes, stopped_at, dump, foreign_ns, upload, .. } =
            snapshot;
        let held_at = attempt.job_mut().and_then(|job| job.held_at.take());
        let sent = Arc::new(AtomicU64::new(0));
        attempt.pending = Some(UnreportedCheckpoint {
            number,
            ppm,
            stopped_at,
            held_at,
            dump,
            criu: Duration::from_nanos(foreign_ns),
            owed: None,
            held: None,
            bytes,
            sent: Arc::clone(&sent),
            stored: Err("whether it is stored is not known".to_owned()),
        });
        if let Some(promise) = attempt.promise_mut() {
            promise.charges.criu += foreign_ns;
        }
        attempt.standing.get_or_insert(stopped_at);
        self.begin_upload(key, number, (upload, sent));
    }

    /// Lets a task run on after its dump, at its promised pace.
    pub(crate) fn go_on_after_dump(&mut self, key: Key) {
        if let Some(cpu) = self.find_attempt(key).map(VmAttempt::first_cpu) {
            self.refresh_quota(cpu);
            self.pace_task(key);
            self.job_stands(key);
        }
    }

    /// Gives back an attempt's permit to use CRIU, as the VM's freeze came first. When the VM thaws, the attempt queues for CRIU
    /// again if a checkpoint is still wanted.
    pub(crate) fn release_dump_turn(&mut self, key: Key) {
        let now = self.pass_time();
        self.model.release_task(now, key.0, key.1);
        self.release_job(key);
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.stands_no_longer(Instant::now());
        attempt.look = Some(Instant::now());
        let cpu = attempt.first_cpu();
        self.refresh_quota(cpu);
    }

    /// Handles a dump that gave no checkpoint; `why` is the reason, or `None` if the task had ended before the dump.
    pub(crate) fn not_kept(&mut self, key: Key, why: Option<String>) {
        let now = self.pass_time();
        let stopping = self.lives.is_stopped(key);
        let ended = why.is_none();
        if let Some(why) = why {
            self.say_no_checkpoint(key, why);
            self.model.release_task(now, key.0, key.1);
            self.release_job(key);
        }
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.missed_checkpoints += u32::from(ended && !stopping);
        attempt.stands_no_longer(Instant::now());
    }

    fn say_no_checkpoint(&self, key: Key, why: String) {
        let failed = CheckpointFailed { task: task_ref(self.id, key), why };
        self.context.send_report(make_report(report::Report::CheckpointFailed(failed)));
    }

    fn begin_upload(
        &self,
        key: Key,
        number: u32,
        (upload, sent): (Box<dyn CheckpointUpload>, Arc<AtomicU64>),
    ) {
        let (tell, pass) = (self.tell.clone(), self.gate.make_pass());
        let (run, task, attempt) = (self.context.run.clone(), key.0.get(), key.1.get());
        let reference = CheckpointRef { run, task, checkpoint: number, attempt };
        tokio::spawn(async move {
            let result = await_outcome(upload.send(pass, reference, sent)).await;
            let _ = tell.cast(OwnerMessage::Stored(key, number, result));
        });
    }

    pub(crate) fn hear_stored(&mut self, key: Key, number: u32, result: Result<u64, String>) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        let Some(pending) = attempt.pending.as_mut().filter(|p| p.number == number) else { return };
        let ok = result.is_ok();
        pending.stored = result;
        if let Err(why) = &pending.stored {
            tracing::warn!(why, task = %attempt.name, number, "a checkpoint can't be stored");
        }
        self.apply_event(VmEvent::Stored { key, number, ok });
    }

    /// Reports a checkpoint, whether stored or not, whose task runs again.
    pub(crate) fn report_checkpoint(&mut self, key: Key) {
        let whose = task_ref(self.id, key);
        let Some(pending) = self.attempt_mut(key).and_then(|attempt| attempt.pending.take()) else {
            return;
        };
        let UnreportedCheckpoint { number, ppm, dump, criu, owed, held, held_at, stored, .. } =
            pending;
        self.context.send_report(make_report(match stored {
            Ok(bytes) => report::Report::CheckpointTaken(CheckpointTaken {
                task: whose,
                checkpoint: number,
                done_ppm: ppm,
                bytes,
                real_held_us: whole_micros(held.unwrap_or_default()),
                real_dump_us: whole_micros(dump),
                real_owed_us: whole_micros(owed.unwrap_or_default()),
                real_criu_us: whole_micros(criu),
                emulated_held_at_us: held_at.map(Time::as_micros),
            }),
            Err(why) => report::Report::CheckpointFailed(CheckpointFailed { task: whose, why }),
        }));
    }
}
