//! One attempt at a task on a simulated VM.

use std::time::Duration;

use dormouse_proto::v1::StartTask;
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::life::Key;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use tokio_util::sync::CancellationToken;

use super::job::Job;
use crate::witness::Image;

/// A process, as its kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Process {
    /// There is none yet.
    #[default]
    None,
    Alive,
    /// It stands still since its dump.
    Still,
    /// It has ended by itself, with an answer or without.
    Exited {
        has_answer: bool,
    },
    Killed,
}

/// A checkpoint that is not yet reported.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) image: Image,
    /// Since when a job stands still in the reference, on the run's clock.
    pub(super) held_at: Option<Time>,
    pub(super) stopped_at: Instant,
    pub(super) dump: Duration,
    /// How long the task had to stand still for it.
    pub(super) owed: Option<Duration>,
    /// How long it stood still, once it runs again.
    pub(super) held: Option<Duration>,
    /// The checkpoint's size, or why the coordinator does not have it.
    pub(super) stored: Result<u64, String>,
}

/// A checkpoint that has just been dumped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    pub(super) image: Image,
    pub(super) stopped_at: Instant,
    pub(super) dump: Duration,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) key: Key,
    pub(super) order: StartTask,
    /// The vCPU of each of its processes.
    pub(super) on: Vec<u32>,
    /// What is particular to it if it is a parallel job.
    pub(super) job: Option<Box<Job>>,
    /// What of its work it began with.
    pub(super) from: Ppm,
    /// When it was decided on, on this host's clock.
    pub(super) asked: Instant,
    /// The same on its VM's clock, and what that had skipped by then.
    pub(super) began: Time,
    pub(super) skipped: Span,
    pub(super) process: Process,
    /// The checkpoint that it came to life from.
    pub(super) image: Option<Image>,
    /// How long it has stood still, and since when it does.
    pub(super) stood: Duration,
    pub(super) standing: Option<Instant>,
    /// How long its VM was frozen under it.
    pub(super) frozen: Duration,
    pub(super) missed_checkpoints: u32,
    /// What of its work its last checkpoint was due to hold.
    pub(super) due: Option<Ppm>,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) pending: Option<Pending>,
    /// The process ends that much work before it should, or so much later.
    pub(super) ends_early: Option<Span>,
    pub(super) ends_late: Duration,
    /// Its end comes without an answer.
    pub(super) fails: bool,
    pub(super) result: Option<String>,
    /// In how long it should have finished, once that has passed; hibernations included.
    pub(super) promised: Option<Duration>,
    pub(super) after: Option<Span>,
    /// What it should have done, once that is final.
    pub(super) final_done: Option<Ppm>,
    pub(super) is_killed: bool,
    /// Its launch is not wanted any more.
    pub(super) revoked: CancellationToken,
    /// All is here for its birth, which waits for the thaw.
    pub(super) waits_for_thaw: bool,
}

impl Attempt {
    /// It stands still since its checkpoint, and has done nothing since.
    pub(super) fn is_kept(&self) -> bool {
        self.process == Process::Still && self.pending.as_ref().is_some_and(|p| p.held.is_none())
    }

    pub(super) fn stands_no_longer(&mut self) {
        if let Some(since) = self.standing.take() {
            self.stood += since.elapsed();
        }
    }

    /// Notes that the attempt's VM was frozen for `span`: that is nobody's time.
    pub(super) fn was_frozen(&mut self, span: Duration) {
        self.frozen += span;
        if let Some(since) = &mut self.standing {
            *since += span;
        }
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.held.is_none()) {
            pending.stopped_at += span;
        }
        if let Some(at) = self.job.as_mut().and_then(|job| job.goes_on_at.as_mut()) {
            *at += span;
        }
    }
}
