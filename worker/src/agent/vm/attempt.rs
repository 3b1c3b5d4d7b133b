//! One attempt at a task on this VM, of one process or of several.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{StartTask, StopTask};
use dormouse_tasks::progress::{Progress, ProgressReader};
use dormouse_units::{Ppm, Tier};

use super::{job::Job, liveness::Liveness, task::Promise};
use crate::{
    agent::{gate::Pass, report::Key},
    cgroup::{self, LiftedQuota},
    process::Task,
    workspace::TaskName,
};

/// Where an attempt is in its life.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its slots are not all free yet: somebody in them is being killed or goes elsewhere.
    Waiting { until: Option<Instant> },
    /// Its process is being made or restored.
    Launching,
    /// Its process is there, and runs or stands still.
    Running,
    /// CRIU is at it.
    Dumping,
    /// Its process is gone and its work done, before its time: it is finished when that has come.
    Early { verified: bool, result: Option<String> },
    /// It has been killed and not yet been seen to be gone.
    Dying,
    /// Its process is gone.
    Gone,
}

/// A checkpoint that is not yet reported.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: u32,
    pub(crate) ppm: u32,
    pub(crate) stopped_at: Instant,
    pub(crate) dump: Duration,
    pub(crate) criu: Duration,
    /// How long the task has to stand still for it, in all.
    pub(crate) owed: Option<Duration>,
    /// How long it stood still, once it runs again.
    pub(crate) held: Option<Duration>,
    /// Its size, once the coordinator has it, or why it has not.
    pub(crate) stored: Option<Result<u64, String>>,
}

/// What an attempt is held to.
#[derive(Debug)]
pub(crate) enum Nature {
    /// A task of one process, to the model of its VM.
    Task(Promise),
    /// A parallel job, to the plan of its phases.
    Job(Box<Job>),
}

/// One attempt at a task on this VM.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) key: Key,
    pub(crate) name: TaskName,
    pub(crate) order: StartTask,
    /// What of its work it began with.
    pub(crate) from_ppm: u32,
    /// When it was decided on, on this host's clock.
    pub(crate) asked: Instant,
    /// The vCPU of each of its processes, and the tier of their slots.
    pub(crate) on: Vec<u32>,
    pub(crate) tier: Tier,
    pub(crate) nature: Nature,
    pub(crate) phase: Phase,
    /// Its only process, or the parent of all.
    pub(crate) process: Option<Arc<Task>>,
    pub(crate) page: Option<Arc<ProgressReader>>,
    /// Since when it stands still.
    pub(crate) standing: Option<Instant>,
    /// How long it has stood still before.
    pub(crate) stood: Duration,
    /// How long its VM was frozen under it.
    pub(crate) frozen: Duration,
    pub(crate) missed_checkpoints: u32,
    /// While it ends: throttled, it would do so late.
    pub(crate) exempt: Vec<LiftedQuota<Arc<cgroup::Vm>>>,
    /// When to look at its progress next; of one that was killed, when it should be gone.
    pub(crate) look: Option<Instant>,
    /// Whether it gets on.
    pub(crate) liveness: Liveness,
    /// What of its work its last checkpoint was due to hold.
    pub(crate) due: Option<Ppm>,
    /// A place at CRIU has been asked for.
    pub(crate) dump_asked: bool,
    /// Another checkpoint is due before the one that is pending is settled.
    pub(crate) due_again: bool,
    pub(crate) pending: Option<Pending>,
    /// It is to be stopped, or has been killed because of it.
    pub(crate) stop: Option<StopTask>,
    /// It was killed because it went wrong.
    pub(crate) wrong: Option<String>,
    /// Its end has been reported while its process still waits for a thaw, or the kernel, to die.
    pub(crate) reported: bool,
    /// Of its launch.
    pub(crate) pass: Pass,
}

impl Attempt {
    /// The vCPU of its first process.
    pub(crate) fn cpu(&self) -> u32 {
        self.on.first().copied().unwrap_or(0)
    }

    /// Of a task of one process.
    pub(crate) fn promise(&self) -> Option<&Promise> {
        match &self.nature {
            Nature::Task(promise) => Some(promise),
            Nature::Job(_) => None,
        }
    }

    /// Of a task of one process, to be changed.
    pub(crate) fn promise_mut(&mut self) -> Option<&mut Promise> {
        match &mut self.nature {
            Nature::Task(promise) => Some(promise),
            Nature::Job(_) => None,
        }
    }

    /// Of a parallel job.
    pub(crate) fn job(&self) -> Option<&Job> {
        match &self.nature {
            Nature::Job(job) => Some(job),
            Nature::Task(_) => None,
        }
    }

    /// Of a parallel job, to be changed.
    pub(crate) fn job_mut(&mut self) -> Option<&mut Job> {
        match &mut self.nature {
            Nature::Job(job) => Some(job),
            Nature::Task(_) => None,
        }
    }

    /// It is a job, and is to go there once it can.
    pub(crate) fn set_later(&mut self, on: Vec<u32>, asked: Instant) {
        if let Some(job) = self.job_mut() {
            job.later = Some((on, asked));
        }
    }

    /// What its process says of itself.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.page.as_ref().and_then(|page| page.read().ok())
    }

    /// What of its work is done, in ppm, as it says itself.
    pub(crate) fn done_ppm(&self) -> u32 {
        self.progress().map_or(self.from_ppm, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// Something is being done to it in another thread.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Launching | Phase::Dumping)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// It stands still since its checkpoint, and has done nothing since.
    pub(crate) fn is_kept(&self) -> bool {
        self.standing.is_some() && self.pending.as_ref().is_some_and(|p| p.held.is_none())
    }

    /// Notes for how much longer it has to stand still for its checkpoint, the first time that is
    /// known.
    pub(crate) fn owe(&mut self, longer: Duration) {
        if let Some(pending) = &mut self.pending {
            pending.owed.get_or_insert_with(|| pending.stopped_at.elapsed() + longer);
        }
    }

    /// Its VM was frozen for this long: that is nobody's time.
    pub(crate) fn was_frozen(&mut self, span: Duration) {
        self.frozen += span;
        self.liveness.pause();
        if let Some(gone) = self.look.as_mut().filter(|_| matches!(self.phase, Phase::Dying)) {
            *gone += span;
        }
        if let Phase::Waiting { until: Some(until) } = &mut self.phase {
            *until += span;
        }
        if let Some(since) = &mut self.standing {
            *since += span;
        }
        if let Some(pending) = self.pending.as_mut().filter(|p| p.held.is_none()) {
            pending.stopped_at += span;
        }
        if let Some(moving) = self.job_mut().and_then(|job| job.moving.as_mut()) {
            moving.asked += span;
        }
    }

    /// Notes that it stands no longer.
    pub(crate) fn stands_no_longer(&mut self, now: Instant) {
        if let Some(since) = self.standing.take() {
            self.stood += now.saturating_duration_since(since);
        }
    }
}
