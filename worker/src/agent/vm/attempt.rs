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

use super::{
    birth::AttemptBirth, job::JobState, last_save::NoticeSave, liveness::TaskLiveness,
    task::TaskPromise,
};
use crate::{
    agent::{
        gate::LaunchPass,
        machine::{ProgressPage, QuotaLift, TakenCheckpoint, TaskProcess},
        own::OwnMeter,
        report::Key,
    },
    workspace::TaskName,
};

/// A checkpoint that is not yet reported.
#[derive(Debug)]
pub(crate) struct UnreportedCheckpoint {
    pub(crate) number: u32,
    pub(crate) ppm: u32,
    pub(crate) stopped_at: Instant,
    /// Since when a job stands still in the reference, on the run's clock.
    pub(crate) held_at: Option<Time>,
    pub(crate) dump: Duration,
    pub(crate) criu: Duration,
    /// The time for which the task has to stand still for it, in all.
    pub(crate) owed: Option<Duration>,
    /// The time for which it stood still, once it runs again.
    pub(crate) held: Option<Duration>,
    /// The size of all that is in it, in bytes, and what of that has been sent.
    pub(crate) bytes: u64,
    pub(crate) sent: Arc<AtomicU64>,
    /// The checkpoint's size, or why the coordinator does not have it, once that is known.
    pub(crate) stored: Result<u64, String>,
}

/// What an attempt is held to.
#[derive(Debug)]
pub(crate) enum AttemptNature {
    /// A task of one process, to the model of its VM.
    Task(TaskPromise),
    /// A parallel job, to the plan of its phases.
    Job(Box<JobState>),
}

/// One attempt at a task on this VM. Where it is in its life is known to
/// [`dormouse_vm::life::AttemptTable`].
#[derive(Debug)]
pub(crate) struct VmAttempt {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    /// What of its work it began with.
    pub(crate) from_ppm: u32,
    /// The time at which it was decided on, on this host's clock.
    pub(crate) asked: Instant,
    /// The time that passed until the inputs of its program were in its directory, for which it is owed none.
    pub(crate) waited_for_inputs: Duration,
    /// The vCPU of each of its processes.
    pub(crate) on: Vec<u32>,
    pub(crate) nature: AttemptNature,
    /// The attempt's only process, or the parent of all its processes.
    pub(crate) process: Option<Arc<dyn TaskProcess>>,
    pub(crate) page: Option<Arc<dyn ProgressPage>>,
    /// Since when it stands still.
    pub(crate) standing: Option<Instant>,
    /// The time for which it has stood still before.
    pub(crate) stood: Duration,
    /// The time for which its VM was frozen under it.
    pub(crate) frozen: Duration,
    pub(crate) missed_checkpoints: u32,
    /// While it ends: throttled, it would do so late.
    pub(crate) exempt: Vec<QuotaLift>,
    /// The time at which to look at its progress next.
    pub(crate) look: Option<Instant>,
    /// Whether it gets on.
    pub(crate) liveness: TaskLiveness,
    /// What of its work its last checkpoint was due to hold.
    pub(crate) due: Option<Ppm>,
    pub(crate) pending: Option<UnreportedCheckpoint>,
    /// The permit of the semaphore `criu` to have CRIU at work on this attempt.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// What its launch brought to life, until its life begins.
    pub(crate) born: Option<AttemptBirth>,
    /// What its dump gave, until that is seen to.
    pub(crate) snapshot: Option<TakenCheckpoint>,
    /// Whether its answer is right, and its result, if its program gives one.
    pub(crate) answer: Option<(bool, Option<String>)>,
    /// What it gets, if it is a program of the user's own.
    pub(crate) own: Option<Box<OwnMeter>>,
    /// How such a program ended, and what it left.
    pub(crate) own_end: Option<OwnEnd>,
    /// The save that such a program makes at a notice, once there is one.
    pub(crate) last_save: Option<NoticeSave>,
    pub(crate) is_killed: bool,
    /// How many processes of its VM had been killed for want of memory when its launch began.
    pub(crate) killed_before: u64,
    /// The VM's permission for the attempt's launch; it can be revoked.
    pub(crate) pass: LaunchPass,
}

impl VmAttempt {
    /// The vCPU of its first process.
    pub(crate) fn first_cpu(&self) -> u32 {
        self.on.first().copied().unwrap_or(0)
    }

    /// The promise, if this is an attempt at a task of one process.
    pub(crate) fn task_promise(&self) -> Option<&TaskPromise> {
        match &self.nature {
            AttemptNature::Task(promise) => Some(promise),
            AttemptNature::Job(_) => None,
        }
    }

    /// The promise to be changed, if this is an attempt at a task of one process.
    pub(crate) fn promise_mut(&mut self) -> Option<&mut TaskPromise> {
        match &mut self.nature {
            AttemptNature::Task(promise) => Some(promise),
            AttemptNature::Job(_) => None,
        }
    }

    /// The job, if this is an attempt at a parallel job.
    pub(crate) fn parallel_job(&self) -> Option<&JobState> {
        match &self.nature {
            AttemptNature::Job(job) => Some(job),
            AttemptNature::Task(_) => None,
        }
    }

    /// The job to be changed, if this is an attempt at a parallel job.
    pub(crate) fn job_mut(&mut self) -> Option<&mut JobState> {
        match &mut self.nature {
            AttemptNature::Job(job) => Some(job),
            AttemptNature::Task(_) => None,
        }
    }

    /// What its process says of itself.
    pub(crate) fn process_progress(&self) -> Option<Progress> {
        self.page.as_ref().and_then(|page| page.progress())
    }

    /// What of its work is done, in ppm, as it says itself, or by what it got.
    pub(crate) fn done_ppm(&self) -> u32 {
        if let (Some(own), AttemptNature::Task(promise)) = (&self.own, &self.nature) {
            return own.done_ppm(promise.ledger.whole_work());
        }
        self.process_progress().map_or(self.from_ppm, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// The attempt stands still since its checkpoint, and has done nothing since.
    pub(crate) fn is_kept(&self) -> bool {
        self.standing.is_some() && self.pending.as_ref().is_some_and(|p| p.held.is_none())
    }

    /// Notes for how much longer it has to stand still for its checkpoint, the first time that is
    /// known.
    pub(crate) fn note_standing(&mut self, longer: Duration) {
        if let Some(pending) = &mut self.pending {
            pending.owed.get_or_insert_with(|| pending.stopped_at.elapsed() + longer);
        }
    }

    /// Notes that the attempt's VM was frozen for `span`: that is nobody's time.
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

    /// The attempt stands still for its checkpoint no longer, whatever becomes of it.
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

    /// Notes that it stands no longer.
    pub(crate) fn stands_no_longer(&mut self, now: Instant) {
        if let Some(since) = self.standing.take() {
            self.stood += now.saturating_duration_since(since);
        }
    }
}
