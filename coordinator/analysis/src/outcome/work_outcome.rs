//! How a unit of work ended, and the ways in which a user's own program fails.

use std::fmt;
use std::fmt::{Display, Formatter};

use dormouse_model::{ProgramEnd, ProgramExit};

/// Outcome of a task of a bag or a parallel job that is over, live or in virtual time. `Display`
/// writes a phrase that follows the name of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The modelled work is done; in virtual time there is no answer to check.
    Completed,
    /// The work is done, and the coordinator has checked its answer.
    Verified,
    /// The worker reports that the work is done, and the answer has not been checked.
    Reported,
    /// The program ended and failed, and is not tried again.
    Failed(ProgramFailure),
    /// The run was over before the work was done.
    GivenUp,
}

impl WorkOutcome {
    /// The outcome as one word in tables, which programs read.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Verified => "verified",
            Self::Reported => "reported",
            Self::Failed(_) => "failed",
            Self::GivenUp => "unfinished",
        }
    }

    /// Whether the work is done.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Completed | Self::Verified | Self::Reported)
    }
}

impl Display for WorkOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Verified => f.write_str("completed and verified"),
            Self::Reported => f.write_str("reported done by its worker"),
            Self::Failed(how) => write!(f, "failed: its program {how}"),
            Self::GivenUp => f.write_str("failed: it was given up"),
        }
    }
}

/// The way in which a user's own program failed. `Display` writes a phrase that follows "its
/// program".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFailure {
    /// The program returned this status, which is not 0.
    Status(i32),
    /// A signal of this number ended the program.
    Signal(i32),
    /// The program returned 0, and the program that checks its answer returned this status.
    Check(i32),
    /// The program returned 0, but its outputs differ from those that were expected.
    WrongOutputs,
    /// The log does not say how the program ended.
    Unknown,
}

impl ProgramFailure {
    /// The failure of a program with this end; [`Self::Unknown`] if the end is not known.
    #[must_use]
    pub fn from_end(end: Option<&ProgramEnd>) -> Self {
        match end.map(|end| (end.exit, end.verify_status)) {
            Some((Some(ProgramExit::Status(0)), Some(status))) if status != 0 => {
                Self::Check(status)
            }
            Some((Some(ProgramExit::Status(0)), _)) => Self::WrongOutputs,
            Some((Some(ProgramExit::Status(status)), _)) => Self::Status(status),
            Some((Some(ProgramExit::Signal(signal)), _)) => Self::Signal(signal),
            Some((None, _)) | None => Self::Unknown,
        }
    }
}

impl Display for ProgramFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "returned status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Check(status) => write!(f, "returned status 0, and its check status {status}"),
            Self::WrongOutputs => f.write_str("returned status 0, and its outputs are wrong"),
            Self::Unknown => f.write_str("did not come to its end"),
        }
    }
}
