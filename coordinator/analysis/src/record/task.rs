//! History of a task.

use std::{sync::Arc, time::Duration};

use dormouse_model::{AttemptLedger, ProgramEnd, StartReason, VmEnd};
use dormouse_units::Mode;
use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Ppm, Span, Time, VmId};

use thin_vec::ThinVec;

use super::VmHistory;

/// One task with every attempt at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskHistory {
    /// Attempts at the task, in order.
    pub attempts: Vec<AttemptHistory>,
    /// Time at which the task finished, whether its answer was verified or only reported; `None` if it did not finish.
    pub finished: Option<Time>,
    /// Whether the coordinator knows only from the worker that the task finished, and has not checked the answer.
    pub reported: bool,
    /// Whether the task is over because its program failed or its answer is wrong.
    pub program_failed: bool,
}

/// One attempt at a task, on one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptHistory {
    /// Number of the attempt.
    pub attempt: Attempt,
    /// VM of the attempt.
    pub vm: VmId,
    /// vCPU on which charts draw the attempt: the one that the log names, else the first free one.
    pub lane: usize,
    /// The scheduler's reason to start the task on this VM.
    pub reason: StartReason,
    /// Checkpoint that the attempt was to start from, and the part of the work that it holds; `None`: from scratch.
    pub sent_with: Option<(CheckpointSeq, Ppm)>,
    /// Checkpoint that the attempt really started from, and the part of the work that it holds; `None`: from scratch.
    pub from: Option<(CheckpointSeq, Ppm)>,
    /// Part of the task's work that was done when the attempt began, as its worker reported; `None` if the worker has not reported
    /// it.
    pub said_to_have: Option<Ppm>,
    /// Checkpoints that could not be restored, by this attempt or before the next one.
    pub fell_back: ThinVec<RestoreFallback>,
    /// Time at which the attempt was sent to the VM.
    pub sent: Time,
    /// Time from which the attempt's VM owes it CPU time. In a live run this is before the attempt's first
    /// instruction, but not before the inputs of its program had arrived.
    pub started: Option<Time>,
    /// CPU modes on a burstable VM, each with its beginning.
    pub modes: ThinVec<(Time, Mode)>,
    /// Times at which the task was commanded to take a checkpoint while it ran; each with true if its scheduler decided
    /// that, false if its checkpointing scheme did.
    pub asked: ThinVec<(Time, bool)>,
    /// Complete checkpoints of the attempt.
    pub checkpoints: ThinVec<CheckpointMark>,
    /// Number of checkpoints that the worker reported as taken or failed.
    pub checkpoint_reports: u32,
    /// Reason why the attempt's work was not saved before its VM ended, as its worker reported; `None` if the worker reported none.
    pub unsaved: Option<String>,
    /// Time at which the attempt ended, and how; `None` while it runs.
    pub ended: Option<(Time, AttemptEnd)>,
    /// CPU time used, real microseconds; zero in virtual time.
    pub real_cpu_us: u64,
    /// Time from the command to the attempt's first instruction, real microseconds; zero in virtual time.
    pub real_start_us: u64,
    /// Part of `real_start_us` until the inputs of a user's own program had arrived, real microseconds.
    pub real_inputs_us: u64,
    /// Account of the CPU time that the attempt was promised and received; `None` in virtual time, and before the attempt's end.
    pub ledger: Option<AttemptLedger>,
    /// Time of the interruption notice at which the attempt's program saved its work, so that work done later is not saved; `None`
    /// without such a notice.
    pub noticed: Option<Time>,
    /// How the user's own program ended; `None` if the attempt ran no such program.
    pub own: Option<Arc<ProgramEnd>>,
    /// Time at which the attempt's worker reported that the restored program was idle, neither computing nor writing, and for how
    /// many real microseconds it had been so. `None` without such a report.
    pub idle: Option<(Time, u64)>,
    /// Time at which the attempt's worker reported what a restore changed for the program, and one sentence for each change that
    /// the kernel shows. `None` without such a report.
    pub changed: Option<(Time, Arc<[String]>)>,
}

/// A complete checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointMark {
    /// Time at which the checkpoint was complete.
    pub at: Time,
    /// Number of the checkpoint.
    pub seq: CheckpointSeq,
    /// Part of the work that the checkpoint keeps.
    pub done: Ppm,
    /// Size of the checkpoint.
    pub bytes: Bytes,
    /// Real microseconds for which the task was stopped for the checkpoint; zero in virtual time.
    pub real_held_us: u64,
    /// Real microseconds for which the task should have been stopped for the checkpoint; zero in virtual time.
    pub real_owed_us: u64,
}

/// A checkpoint that could not be restored, or that its scheduler gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreFallback {
    /// Time at which the coordinator learned that the checkpoint could not be restored, or was to be given up.
    pub at: Time,
    /// Number of the checkpoint, and the part of the work that it holds.
    pub from: (CheckpointSeq, Ppm),
    /// Older checkpoint that the task is restored from in place of the unusable one; `None` if the task starts from scratch.
    pub to: Option<(CheckpointSeq, Ppm)>,
    /// Host on which restoring the checkpoint is not tried again; `None`: no host is excluded.
    pub not_on: Option<HostId>,
    /// True if the scheduler gave up the checkpoint.
    pub given_up: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The attempt finished the task's work, and the answer was verified.
    Finished,
    /// The attempt failed, for this reason.
    Failed(String),
    /// The attempt was stopped with this part of the work in a checkpoint.
    Stopped(Ppm),
    /// The attempt was stopped without a checkpoint.
    Dropped,
    /// The VM of the attempt ended, for this reason.
    VmGone(VmEnd),
}

impl AttemptHistory {
    /// Time and words of the worker's report that a restored program does nothing; the words follow
    /// the program's name.
    #[must_use]
    pub fn idle_words(&self) -> Option<(Time, String)> {
        let (at, real_us) = self.idle?;
        let seconds = Duration::from_micros(real_us).as_secs_f64();
        let what = "has neither computed nor written anything since it was restored";
        Some((at, format!("{what}, for {seconds:.0} s (real), and its VM is charged for")))
    }

    /// Time and words of the report on the effects of a restore on the program; the words follow the program's name.
    #[must_use]
    pub fn changed_words(&self) -> Option<(Time, String)> {
        let (at, changes) = self.changed.as_ref()?;
        Some((*at, format!("is another since its restore: {}", changes.join("; "))))
    }

    /// Part of the task's work that is kept at the attempt's end, by this attempt or earlier ones.
    #[must_use]
    pub fn kept(&self) -> Ppm {
        match (&self.ended, self.checkpoints.last(), self.from) {
            (Some((_, AttemptEnd::Finished)), ..) => Ppm::ONE,
            (Some((_, AttemptEnd::Stopped(done))), ..) => *done,
            (_, Some(mark), _) => mark.done,
            (_, None, Some((_, done))) => done,
            _ => Ppm::ZERO,
        }
    }

    /// Time for which the attempt computed on `vm` in vain: from the last checkpoint to the end, without the VM's
    /// hibernations. Zero for a finished attempt.
    #[must_use]
    pub fn lost(&self, vm: &VmHistory) -> Span {
        let (Some(since), Some((at, end))) = (self.kept_at(), &self.ended) else {
            return Span::ZERO;
        };
        match end {
            AttemptEnd::Finished => Span::ZERO,
            AttemptEnd::Stopped(_)
            | AttemptEnd::Failed(_)
            | AttemptEnd::Dropped
            | AttemptEnd::VmGone(_) => vm.awake(since, *at),
        }
    }

    /// Time after which the attempt's work is lost: its end, if it was stopped with all its work in a checkpoint; the
    /// time of the notice, if its program saved its work then; else its last checkpoint or its start.
    #[must_use]
    pub fn kept_at(&self) -> Option<Time> {
        let started = self.started?;
        let mark = self.checkpoints.last().map(|mark| mark.at);
        let kept = match &self.ended {
            Some((at, AttemptEnd::Stopped(_))) => Some(*at),
            _ => mark,
        };
        let saved = self.noticed.filter(|notice| kept.is_some_and(|at| at >= *notice));
        Some(saved.or(kept).unwrap_or(started))
    }

    /// Time of the attempt's end, or `now` if it still runs.
    #[must_use]
    pub fn end_or(&self, now: Time) -> Time {
        self.ended.as_ref().map_or(now, |(at, _)| *at)
    }

    /// CPU mode in which the attempt began.
    #[must_use]
    pub fn first_mode(&self) -> Mode {
        self.modes.first().map(|&(_, mode)| mode).unwrap_or_default()
    }
}

impl TaskHistory {
    /// The attempt that still runs, or else the last one; `None` if there was no attempt.
    #[must_use]
    pub fn last(&self) -> Option<&AttemptHistory> {
        self.attempts.last()
    }

    /// Whether the task ran a user's own program, whose run time only its user knows.
    #[must_use]
    pub fn is_own_program(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.own.is_some())
    }

    /// The attempt from which the `n`th attempt migrated: the last earlier attempt that ran. `None` if the task has not moved to
    /// another VM.
    #[must_use]
    pub fn migrated_from(&self, n: usize) -> Option<&AttemptHistory> {
        let is = self.attempts.get(n)?;
        let before = self.attempts.get(..n)?.iter().rev().find(|it| it.started.is_some())?;
        (before.vm != is.vm).then_some(before)
    }

    /// All migrations of the task in order: the attempt that ran, and the one that continues it on
    /// another VM. Stealing a task that never ran is not a migration.
    pub fn migrations(&self) -> impl Iterator<Item = (&AttemptHistory, &AttemptHistory)> {
        let pair = |(n, is)| Some((self.migrated_from(n)?, is));
        self.attempts.iter().enumerate().filter_map(pair)
    }

    /// The attempt with this number; `None` if there is none.
    #[must_use]
    pub fn attempt(&self, number: Attempt) -> Option<&AttemptHistory> {
        self.attempts.iter().rev().find(|a| a.attempt == number)
    }

    pub(super) fn current(&mut self, attempt: Attempt) -> Option<&mut AttemptHistory> {
        self.attempts.iter_mut().rev().find(|a| a.attempt == attempt)
    }

    pub(super) fn open(&mut self) -> Option<&mut AttemptHistory> {
        self.attempts.last_mut().filter(|a| a.ended.is_none())
    }
}
