//! How a unit of work ended.

use std::fmt::{self, Display, Formatter};

use super::ProgramFailure;

/// Outcome of a task of a bag or a parallel job that is over, live or in virtual time. `Display`
/// writes a phrase that follows the name of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The modelled work is done; in virtual time there is no answer to check.
    Completed,
    /// The work is done, and the coordinator has checked its answer.
    Verified,
    /// The work is done by its worker's word alone: nobody has checked its answer.
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
