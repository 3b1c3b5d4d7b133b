//! The fate of a task.

use std::{sync::Arc, time::Duration};

use dormouse_model::{Ledger, OwnEnd, StartReason, VmEnd};
use dormouse_units::Mode;
use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Ppm, Span, Time, VmId};

use thin_vec::ThinVec;

use super::VmHistory;

/// One task: every attempt at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskHistory {
    /// The attempts, in order.
    pub attempts: Vec<AttemptHistory>,
    /// The time at which it was finished, verified or reported.
    pub finished: Option<Time>,
    /// The task was finished by its worker's word alone: nobody could check its answer.
    pub reported: bool,
    /// The task is over, and its program did not end well, or its answer is wrong.
    pub program_failed: bool,
}

/// One attempt at a task, on one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptHistory {
    /// Number of the attempt.
    pub attempt: Attempt,
    /// The VM that it was on.
    pub vm: VmId,
    /// On which vCPU it is drawn: the first that was free.
    pub lane: usize,
    /// The scheduler's reason for this VM.
    pub reason: StartReason,
    /// The checkpoint that it was sent with, holding what of the work.
    pub sent_with: Option<(CheckpointSeq, Ppm)>,
    /// The checkpoint that it began with.
    pub from: Option<(CheckpointSeq, Ppm)>,
    /// The part of its work that it began with, as its worker said.
    pub said_to_have: Option<Ppm>,
    /// Checkpoints that could not be restored by it, or before the next attempt.
    pub fell_back: ThinVec<FallBack>,
    /// The time at which it was sent to the VM.
    pub sent: Time,
    /// From when it ran: the moment from which its VM owes it time. What passed until its first
    /// instruction, live, is owed to it too, but for the time until the inputs of its program had come.
    pub started: Option<Time>,
    /// How it ran on a burstable VM, from when.
    pub modes: ThinVec<(Time, Mode)>,
    /// The time at which it was to be checkpointed while it ran, and whether its scheduler decided that then; else
    /// its checkpointing scheme had.
    pub asked: ThinVec<(Time, bool)>,
    /// Complete checkpoints of the attempt.
    pub checkpoints: ThinVec<CheckpointMark>,
    /// The number of reports of a checkpoint that was taken or failed.
    pub checkpoint_reports: u32,
    /// Why a save of its work was not done when its VM was gone, as its worker said then.
    pub unsaved: Option<String>,
    /// The time and the way of its end.
    pub ended: Option<(Time, AttemptEnd)>,
    /// CPU time it used, real microseconds; zero in virtual time.
    pub real_cpu_us: u64,
    /// From the command to its first instruction, real microseconds; zero in virtual time.
    pub real_start_us: u64,
    /// What of that passed until the inputs of a program of the user's own were in its directory, real microseconds.
    pub real_inputs_us: u64,
    /// What it was promised and got, once it is over; of live runs.
    pub ledger: Option<Ledger>,
    /// The time at which its program was given notice, if it saves its work then: what it computed after that is in
    /// nothing that it saved.
    pub noticed: Option<Time>,
    /// How the program of the user's own ended that it ran, if it ran one.
    pub own: Option<Arc<OwnEnd>>,
    /// When its worker said that its program, which was restored, has neither computed nor written anything since, and for
    /// how long by then, real microseconds.
    pub idle: Option<(Time, u64)>,
    /// What the kernel says of its program since it was restored otherwise than before, a sentence each, and when its worker
    /// said so.
    pub changed: Option<(Time, Arc<[String]>)>,
}

/// A complete checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointMark {
    /// The time at which it was complete.
    pub at: Time,
    /// Number of the checkpoint.
    pub seq: CheckpointSeq,
    /// What of the work it keeps.
    pub done: Ppm,
    /// Size of the checkpoint.
    pub bytes: Bytes,
    /// The time for which the task stood still for it, real microseconds; zero in virtual time.
    pub real_held_us: u64,
    /// The time for which it had to, likewise.
    pub real_owed_us: u64,
}

/// A checkpoint that could not be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FallBack {
    /// The time at which that was known.
    pub at: Time,
    /// Number of the checkpoint, and what of the work it holds.
    pub from: (CheckpointSeq, Ppm),
    /// What the task begins with instead; `None`: from scratch.
    pub to: Option<(CheckpointSeq, Ppm)>,
    /// Not on this host.
    pub not_on: Option<HostId>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The work is done and verified.
    Finished,
    /// The attempt came to nothing.
    Failed(String),
    /// The attempt was stopped, and a checkpoint keeps this much.
    Stopped(Ppm),
    /// The attempt was stopped where it was, frozen or running.
    Dropped,
    /// The attempt's VM was gone.
    VmGone(VmEnd),
}

impl AttemptHistory {
    /// What its worker said, and when, of a program that does nothing since it was restored, as it stands after the
    /// program's name.
    #[must_use]
    pub fn idle_words(&self) -> Option<(Time, String)> {
        let (at, real_us) = self.idle?;
        let seconds = Duration::from_micros(real_us).as_secs_f64();
        let what = "has neither computed nor written anything since it was restored";
        Some((at, format!("{what}, for {seconds:.0} s (real), and its VM is charged for")))
    }

    /// What its restore has changed of its program, and when that was said, as it stands after the program's name.
    #[must_use]
    pub fn changed_words(&self) -> Option<(Time, String)> {
        let (at, changes) = self.changed.as_ref()?;
        Some((*at, format!("is another since its restore: {}", changes.join("; "))))
    }

    /// What of the work is kept at its end, by it or from before.
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

    /// Time it had computed on `vm` for nothing: what it computed that is not in what was kept, without the time its VM
    /// was frozen.
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

    /// From when on its work is kept by nothing: its end, where it was stopped with all it had done; the notice, where
    /// its program saved its work then; else its last checkpoint, or its start.
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

    /// The time at which it ended, or `now` if it still runs.
    #[must_use]
    pub fn end_or(&self, now: Time) -> Time {
        self.ended.as_ref().map_or(now, |(at, _)| *at)
    }

    /// The mode it began in.
    #[must_use]
    pub fn first_mode(&self) -> Mode {
        self.modes.first().map(|&(_, mode)| mode).unwrap_or_default()
    }
}

impl TaskHistory {
    /// The attempt under way or the last one.
    #[must_use]
    pub fn last(&self) -> Option<&AttemptHistory> {
        self.attempts.last()
    }

    /// Whether it ran a program of the user's own: how long that takes is what its user said.
    #[must_use]
    pub fn is_own_program(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.own.is_some())
    }

    /// The attempt that the `n`th one continues elsewhere, where that is a migration: the last one before it that
    /// ran, if it ran on another VM.
    #[must_use]
    pub fn migrated_from(&self, n: usize) -> Option<&AttemptHistory> {
        let is = self.attempts.get(n)?;
        let before = self.attempts.get(..n)?.iter().rev().find(|it| it.started.is_some())?;
        (before.vm != is.vm).then_some(before)
    }

    /// The migrations of the task, in order: each attempt that ran, and the one that continues it on another VM,
    /// whoever decided that. A steal of what never ran is none.
    pub fn migrations(&self) -> impl Iterator<Item = (&AttemptHistory, &AttemptHistory)> {
        let pair = |(n, is)| Some((self.migrated_from(n)?, is));
        self.attempts.iter().enumerate().filter_map(pair)
    }

    /// The attempt of this number.
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
