//! State of a task's checkpoints: what its scheme wants, and what the machine was commanded to do.

use dormouse_units::Time;

/// State of the checkpoints of a task's current attempt: the answers of its scheme, and the commands to its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointState {
    /// Number of the latest answer of the task's checkpointing scheme; earlier answers no longer count.
    turn: u32,
    /// True if the scheme's latest answer covers all remaining checkpoints of the attempt.
    all_known: bool,
    /// True if a checkpoint must be taken as soon as the task runs.
    due: bool,
    /// Time at which the last checkpoint was stored or failed; if there was none, the time at which the attempt began.
    since: Time,
    /// True if the machine was commanded to take a checkpoint and hasn't reported its outcome.
    told: bool,
}

impl CheckpointState {
    /// Returns the state of an attempt that begins now.
    pub(crate) fn attempt_begun(now: Time) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// Returns the time at which the last checkpoint was stored or failed; if there was none, the time at which the attempt began.
    pub(crate) const fn last_kept(&self) -> Time {
        self.since
    }

    /// Returns whether the scheme has set the times of all remaining checkpoints of the attempt.
    pub(crate) const fn are_all_known(&self) -> bool {
        self.all_known
    }

    /// Counts one more answer of the scheme and returns its number.
    pub(crate) const fn count_answer(&mut self) -> u32 {
        self.turn += 1;
        self.turn
    }

    /// Returns whether the latest answer of the task's checkpointing scheme is the one with the number `turn`.
    pub(crate) const fn is_last_answer(&self, turn: u32) -> bool {
        self.turn == turn
    }

    /// Records that the scheme has set the points of the work at which all remaining checkpoints are taken.
    pub(crate) const fn all_are_known(&mut self) {
        self.all_known = true;
    }

    /// Requests a checkpoint as soon as the task runs.
    pub(crate) const fn want_checkpoint(&mut self) {
        self.due = true;
    }

    /// Returns whether a checkpoint must be taken as soon as the task runs.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.due
    }

    /// Records that the machine is commanded to take the requested checkpoint. Returns false if the machine is already
    /// taking one, which counts for this request too.
    pub(crate) const fn start_wanted(&mut self) -> bool {
        self.due = false;
        !std::mem::replace(&mut self.told, true)
    }

    /// Returns whether the machine was commanded to take a checkpoint and hasn't reported its outcome.
    pub(crate) const fn is_told(&self) -> bool {
        self.told
    }

    /// Records that the checkpoint that the machine was commanded to take was stored or failed.
    pub(crate) const fn checkpoint_over(&mut self, now: Time) {
        (self.told, self.since) = (false, now);
    }

    /// Requests again the checkpoint that the machine was commanded to take, since the command or its report may be
    /// lost. Returns false if there was no command.
    pub(crate) const fn want_again(&mut self) -> bool {
        let was_told = std::mem::replace(&mut self.told, false);
        self.due |= was_told;
        was_told
    }
}
