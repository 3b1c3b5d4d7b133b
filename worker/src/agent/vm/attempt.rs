//! One attempt at a task on this VM.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{StartTask, StopTask};
use dormouse_tasks::progress::{Progress, ProgressReader};
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::Ledger;

use super::liveness::Liveness;
use crate::{
    agent::{gate::Pass, report::Key},
    cgroup::{self, LiftedQuota, Slot},
    process::Task,
    workspace::TaskName,
};

/// Where an attempt is in its life.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its slot is still occupied by a task that is being killed.
    Waiting { until: Instant },
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

/// CPU time, in nanoseconds, that an attempt's slot was charged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charges {
    /// Before the attempt.
    pub(crate) base: u64,
    /// Of its birth.
    pub(crate) birth: u64,
    /// By CRIU: around it, in its restore, and inside it, in dumps.
    pub(crate) criu: u64,
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
    /// When its start was decided on, on its VM's clock, and what that had skipped by then.
    pub(crate) began: Time,
    pub(crate) skipped: Span,
    pub(crate) cpu: u32,
    pub(crate) slot: Slot,
    /// The share of a host core that is its full speed, in ppm.
    pub(crate) share: u32,
    pub(crate) phase: Phase,
    pub(crate) process: Option<Arc<Task>>,
    pub(crate) page: Option<Arc<ProgressReader>>,
    pub(crate) charges: Charges,
    pub(crate) ledger: Ledger,
    /// CPU time of the work that it came with, in nanoseconds.
    pub(crate) came_with: u64,
    /// Its quota is this many times that of its speed, to catch up.
    pub(crate) times: Ppm,
    /// Since when it stands still.
    pub(crate) standing: Option<Instant>,
    /// How long it has stood still before.
    pub(crate) stood: Duration,
    /// How long its VM was frozen under it.
    pub(crate) frozen: Duration,
    /// In how long it should have finished, once that has passed.
    pub(crate) promised: Option<Duration>,
    /// The same in emulated time, hibernations included.
    pub(crate) after: Option<Span>,
    /// CPU time that it should have worked, once that is final, in nanoseconds.
    pub(crate) final_promise: Option<u64>,
    pub(crate) missed_checkpoints: u32,
    /// While it ends: throttled, it would do so late.
    pub(crate) exempt: Option<LiftedQuota<Arc<cgroup::Vm>>>,
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
    /// What its process says of itself.
    pub(crate) fn progress(&self) -> Option<Progress> {
        self.page.as_ref().and_then(|page| page.read().ok())
    }

    /// What of its work is done, in ppm, as it says itself.
    pub(crate) fn done_ppm(&self) -> u32 {
        self.progress().map_or(self.from_ppm, |p| u32::try_from(p.ppm).unwrap_or(1_000_000))
    }

    /// CPU time of the work that is done, in nanoseconds.
    pub(crate) fn worked(&self) -> u64 {
        self.ledger.part(Ppm::new(self.done_ppm()))
    }

    /// Something is being done to it in another thread.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Launching | Phase::Dumping)
    }

    /// It has been killed and may still be there.
    pub(crate) fn is_dying(&self) -> bool {
        matches!(self.phase, Phase::Dying)
    }

    /// It was stopped in its launch, which may still bring it to life.
    pub(crate) fn is_given_up(&self) -> bool {
        self.reported && matches!(self.phase, Phase::Launching)
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
        if let Phase::Waiting { until } = &mut self.phase {
            *until += span;
        }
        if let Some(since) = &mut self.standing {
            *since += span;
        }
        if let Some(pending) = self.pending.as_mut().filter(|p| p.held.is_none()) {
            pending.stopped_at += span;
        }
    }

    /// Notes that it stands no longer.
    pub(crate) fn stands_no_longer(&mut self, now: Instant) {
        if let Some(since) = self.standing.take() {
            self.stood += now.saturating_duration_since(since);
        }
    }
}
