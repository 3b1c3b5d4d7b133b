//! Why a job waits: what one watched job is told after each pass.

use dormouse_units::Time;

use dormouse_units::TaskId;

/// Something that became true of the watched job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// From when on it was so, emulated time.
    pub at: Time,
    /// The reason that the job has no foreground.
    pub what: Noted,
}

/// Why the watched job has no foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It is the head of the queue, with a reservation.
    Head {
        /// Number of idle processors.
        idle: u32,
        /// When its reservation begins.
        shadow: Time,
    },
    /// Too few processors are idle for it.
    TooFewIdle {
        /// Jobs before it.
        ahead: usize,
        /// Number of idle processors.
        idle: u32,
    },
    /// It would fit, but may delay the head of the queue.
    WouldDelay {
        /// Jobs before it.
        ahead: usize,
        /// Job at the head of the queue.
        head: TaskId,
        /// When the head's reservation begins.
        shadow: Time,
        /// Processors that may be used past that.
        extra: u32,
    },
    /// It sits in the background and its own processors are not all idle (REASY), or idle
    /// ones that it may use are too few.
    Pinned {
        /// Jobs before it.
        ahead: usize,
    },
    /// First come, first served: jobs before it come first.
    NotYet {
        /// Jobs before it.
        ahead: usize,
    },
}

/// The job that is being watched and what was noted of it so far.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) job: TaskId,
    notes: Vec<Note>,
}

impl Watch {
    pub(crate) const fn new(job: TaskId) -> Self {
        Self { job, notes: Vec::new() }
    }

    /// Notes it unless nothing changed.
    pub(crate) fn note(&mut self, at: Time, what: Noted) {
        if self.notes.last().is_none_or(|last| last.what != what) {
            self.notes.push(Note { at, what });
        }
    }

    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }
}
