//! Reasons why a watched job waits, noted after each pass.

use dormouse_units::Time;

use dormouse_units::TaskId;

/// Something that became true of the watched job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Emulated time from which on the reason held.
    pub at: Time,
    /// The reason that the job has no foreground.
    pub what: Noted,
}

/// Reason why the watched job has no foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The job is the head of the queue, with a reservation.
    Head {
        /// Number of idle processors.
        idle: u32,
        /// When the job's reservation begins.
        shadow: Time,
    },
    /// Too few processors are idle for the job.
    TooFewIdle {
        /// Number of jobs before the job in the queue.
        ahead: usize,
        /// Number of idle processors.
        idle: u32,
    },
    /// The job would fit, but may delay the head of the queue.
    WouldDelay {
        /// Number of jobs before the job in the queue.
        ahead: usize,
        /// Job at the head of the queue.
        head: TaskId,
        /// When the head's reservation begins.
        shadow: Time,
        /// Number of processors that may be used past the beginning of the reservation.
        extra: u32,
    },
    /// The job is in the background and may not come to the foreground: its own processors are not all idle (REASY), or it may use
    /// too few of the idle ones.
    Pinned {
        /// Number of jobs before the job in the queue.
        ahead: usize,
    },
    /// The scheduler is first come, first served, and jobs before this one come first.
    NotYet {
        /// Number of jobs before the job in the queue.
        ahead: usize,
    },
}

/// The job that is being watched, and the notes on it so far.
#[derive(Clone, Debug)]
pub(crate) struct WatchedJob {
    pub(crate) job: TaskId,
    notes: Vec<Note>,
}

impl WatchedJob {
    pub(crate) const fn new(job: TaskId) -> Self {
        Self { job, notes: Vec::new() }
    }

    /// Adds a reason to the notes, unless it equals the last one.
    pub(crate) fn add_note(&mut self, at: Time, what: Noted) {
        if self.notes.last().is_none_or(|last| last.what != what) {
            self.notes.push(Note { at, what });
        }
    }

    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }
}
