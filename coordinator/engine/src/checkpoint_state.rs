//! What a task's scheme wants of its checkpoints, and what of it was asked of the machine.

use dormouse_units::Time;

/// State of the checkpoints of the present attempt at a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointState {
    /// The scheme's answers so far: those before the last count no more.
    turn: u32,
    /// The scheme's latest answer covers all checkpoint positions of the attempt.
    all_known: bool,
    /// One is wanted as soon as the task runs.
    due: bool,
    /// The time at which the last one was kept, or could not be; else that at which the attempt began.
    since: Time,
    /// A machine was told to take one and has not said what became of it.
    told: bool,
}

impl CheckpointState {
    /// An attempt begins.
    pub(crate) fn attempt_begun(now: Time) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// The time at which the last checkpoint was kept, or could not be; else that at which the attempt began.
    pub(crate) const fn last_kept(&self) -> Time {
        self.since
    }

    /// Whether the scheme has said of all checkpoints of the attempt when they are taken.
    pub(crate) const fn are_all_known(&self) -> bool {
        self.all_known
    }

    /// The scheme has answered; the number of this answer.
    pub(crate) const fn count_answer(&mut self) -> u32 {
        self.turn += 1;
        self.turn
    }

    /// Whether the scheme's last answer is that of this number.
    pub(crate) const fn is_last_answer(&self, turn: u32) -> bool {
        self.turn == turn
    }

    /// The scheme has said at which points of the work all of them are taken.
    pub(crate) const fn all_are_known(&mut self) {
        self.all_known = true;
    }

    /// One is wanted as soon as the task runs.
    pub(crate) const fn want_checkpoint(&mut self) {
        self.due = true;
    }

    /// Whether one is wanted.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.due
    }

    /// The machine is told to take the one that is wanted; false if it is at one already, which will do.
    pub(crate) const fn start_wanted(&mut self) -> bool {
        self.due = false;
        !std::mem::replace(&mut self.told, true)
    }

    /// Whether a machine was told to take one and has not said what became of it.
    pub(crate) const fn is_told(&self) -> bool {
        self.told
    }

    /// A checkpoint was kept, or could not be.
    pub(crate) const fn checkpoint_over(&mut self, now: Time) {
        (self.told, self.since) = (false, now);
    }

    /// The machine may not have heard what it was told, or nobody its answer: what it was told is wanted again. False
    /// if it was told nothing.
    pub(crate) const fn want_again(&mut self) -> bool {
        let was_told = std::mem::replace(&mut self.told, false);
        self.due |= was_told;
        was_told
    }
}
