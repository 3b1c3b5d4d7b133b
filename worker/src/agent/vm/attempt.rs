//! One attempt at a task on this VM, of one process or of several.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_proto::v1::{OwnEnd, StartTask};
use dormouse_tasks::progress::Progress;
use dormouse_units::{Ppm, Time};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{job::JobState, last_save::NoticeSave, liveness::TaskLiveness, task::TaskPromise};
use crate::{
    agent::{
        gate::LaunchPass,
        machine::{AttemptBirth, ProgressPage, QuotaLift, TakenCheckpoint, TaskProcess},
        own::OwnMeter,
        report::Key,
    },
    workspace::TaskName,
};

/// A checkpoint of a task that isn't reported to the coordinator yet.
#[derive(Debug)]
pub(crate) struct UnreportedCheckpoint {
    pub(crate) number: u32,
    pub(crate) ppm: u32,
    pub(crate) stopped_at: Instant,
    /// Time since which the job is stopped in the model that it is compared with, on the run's clock; `None` for tasks of one
    /// process.
    pub(crate) held_at: Option<Time>,
    pub(crate) dump: Duration,
    pub(crate) criu: Duration,
    /// Total time for which the task must be stopped for the checkpoint; `None` until that is known.
    pub(crate) owed: Option<Duration>,
    /// Time for which the task was stopped for the checkpoint; `None` until it runs again.
    pub(crate) held: Option<Duration>,
    /// Size of the checkpoint in bytes; `sent` counts the bytes sent to the coordinator so far.
    pub(crate) bytes: u64,
    pub(crate) sent: Arc<AtomicU64>,
    /// Once known: size in bytes of the checkpoint that the coordinator has stored, or the reason why the coordinator doesn't have
    /// the checkpoint.
    pub(crate) stored: Result<u64, String>,
}

/// Kind of an attempt (a task of one process or a parallel job), with the model that its progress is compared with.
#[derive(Debug)]
pub(crate) enum AttemptNature {
    /// A task of one process, compared with the model of its VM.
    Task(TaskPromise),
    /// A parallel job, compared with the plan of its phases.
    Job(Box<JobState>),
}

/// One attempt at a task on this VM. The attempt's stage is in the [`dormouse_vm::life::AttemptTable`].
#[derive(Debug)]
pub(crate) struct VmAttempt {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    /// Part of the task's work with which the attempt began, in ppm.
    pub(crate) from_ppm: u32,
    /// Time at which the start of the attempt was decided, on this host's clock.
    pub(crate) asked: Instant,
    /// Time until the inputs of the attempt's program were in its directory; nothing is promised to the attempt for
    /// this time.
    pub(crate) waited_for_inputs: Duration,
    /// vCPU of each process of the attempt.
    pub(crate) on: Vec<u32>,
    pub(crate) nature: AttemptNature,
    /// The attempt's only process, or the parent of its processes; `None`: the attempt has no process yet.
    pub(crate) process: Option<Arc<dyn TaskProcess>>,
    pub(crate) page: Option<Arc<dyn ProgressPage>>,
    /// Time since which the attempt is stopped; `None`: it runs.
    pub(crate) standing: Option<Instant>,
    /// Total time for which the attempt was stopped before the stop that began at `standing`.
    pub(crate) stood: Duration,
    /// Time for which the VM was frozen since the attempt's start.
    pub(crate) frozen: Duration,
    pub(crate) missed_checkpoints: u32,
    /// Guards that lift the CPU quotas of the attempt's slots while the attempt ends, as a quota would make it end late.
    pub(crate) exempt: Vec<QuotaLift>,
    /// Time at which the attempt's progress is checked next; `None`: it isn't checked again.
    pub(crate) look: Option<Instant>,
    /// Watches whether the attempt makes progress.
    pub(crate) liveness: TaskLiveness,
    /// Part of the task's work at which the attempt's last checkpoint was planned; `None` before the first planned checkpoint.
    pub(crate) due: Option<Ppm>,
    pub(crate) pending: Option<UnreportedCheckpoint>,
    /// The attempt's permit to use CRIU, while it has one.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// Result of the attempt's launch, until the attempt has begun.
    pub(crate) born: Option<AttemptBirth>,
    /// Checkpoint that the attempt's dump gave, until the dump's result is handled.
    pub(crate) snapshot: Option<TakenCheckpoint>,
    /// Whether the attempt's answer is right, and its result if its program gives one; `None`: there is no answer yet.
    pub(crate) answer: Option<(bool, Option<String>)>,
    /// CPU time of a user's own program; `None` for other programs.
    pub(crate) own: Option<Box<OwnMeter>>,
    /// End of a user's own program, with its files; `None` before its end, and for other programs.
    pub(crate) own_end: Option<OwnEnd>,
    /// Save of a user's own program at a notice, once there is one.
    pub(crate) last_save: Option<NoticeSave>,
    pub(crate) is_killed: bool,
    /// Number of the VM's processes that had been killed for lack of memory before the attempt's launch.
    pub(crate) killed_before: u64,
    /// Permission for the attempt's launch, which can be revoked.
    pub(crate) pass: LaunchPass,
}

impl VmAttempt {
    /// Returns the vCPU of the attempt's first process.
    pub(crate) fn first_cpu(&self) -> u32 {
        self.on.first().copied().unwrap_or(0)
    }

    /// Returns the promised time of an attempt at a task of one process; `None` for a parallel job.
    pub(crate) fn task_promise(&self) -> Option<&TaskPromise> {
        match &self.nature {
            AttemptNature::Task(promise) => Some(promise),
            AttemptNature::Job(_) => None,
        }
    }

    /// Returns a mutable reference to the promised time of an attempt at a task of one process; `None` for a parallel job.
    pub(crate) fn promise_mut(&mut self) -> Option<&mut TaskPromise> {
        match &mut self.nature {
            AttemptNature::Task(promise) => Some(promise),
            AttemptNature::Job(_) => None,
        }
    }

    /// Returns the state of a parallel job; `None` for a task of one process.
    pub(crate) fn parallel_job(&self) -> Option<&JobState> {
        match &self.nature {
            AttemptNature::Job(job) => Some(job),
            AttemptNature::Task(_) => None,
        }
    }

    /// Returns a mutable reference to the state of a parallel job; `None` for a task of one process.
    pub(crate) fn job_mut(&mut self) -> Option<&mut JobState> {
        match &mut self.nature {
            AttemptNature::Job(job) => Some(job),
            AttemptNature::Task(_) => None,
        }
    }

    /// Returns the progress that the attempt's process reports; `None` if it reports none.
    pub(crate) fn process_progress(&self) -> Option<Progress> {
        self.page.as_ref().and_then(|page| page.progress())
    }

    /// Returns the part of the task's work that is done, in ppm: as the task reports, or by the CPU time that it
    /// received.
    pub(crate) fn done_ppm(&self) -> u32 {
        if let (Some(own), AttemptNature::Task(promise)) = (&self.own, &self.nature) {
            return own.done_ppm(promise.ledger.whole_work());
        }
        self.process_progress().map_or(self.from_ppm, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// Returns whether the attempt is still stopped for its checkpoint.
    pub(crate) fn is_kept(&self) -> bool {
        self.standing.is_some() && self.pending.as_ref().is_some_and(|p| p.held.is_none())
    }

    /// Records for how much longer the attempt must be stopped for its checkpoint, the first time that this is known.
    pub(crate) fn note_standing(&mut self, longer: Duration) {
        if let Some(pending) = &mut self.pending {
            pending.owed.get_or_insert_with(|| pending.stopped_at.elapsed() + longer);
        }
    }

    /// Records that the VM was frozen for `span`, which doesn't count for the attempt.
    pub(crate) fn was_frozen(&mut self, span: Duration) {
        self.frozen += span;
        self.liveness.pause_watch();
        if let Some(own) = &mut self.own {
            own.pause_count();
        }
        if let Some(since) = &mut self.standing {
            *since += span;
        }
        if let Some(pending) = &mut self.pending
            && pending.held.is_none()
        {
            pending.stopped_at += span;
        }
        let Some(job) = self.job_mut() else { return };
        if let Some(moving) = &mut job.moving {
            moving.asked += span;
        }
        if let Some(at) = &mut job.goes_on_at {
            *at += span;
        }
    }

    /// Records that the time for which the attempt is stopped for its checkpoint ends `now`, whether the attempt continues or not.
    pub(crate) fn ends_hold(&mut self, now: Instant) {
        if self.is_kept() {
            self.note_standing(Duration::ZERO);
            if let Some(pending) = &mut self.pending {
                pending.held = Some(now.saturating_duration_since(pending.stopped_at));
            }
        }
        self.stands_no_longer(now);
        if let Some(job) = self.job_mut() {
            job.goes_on_at = None;
        }
    }

    /// Records that the attempt is no longer stopped.
    pub(crate) fn stands_no_longer(&mut self, now: Instant) {
        if let Some(since) = self.standing.take() {
            self.stood += now.saturating_duration_since(since);
        }
    }
}
