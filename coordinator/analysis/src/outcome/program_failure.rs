//! The ways in which a user's own program fails.

use std::fmt::{self, Display, Formatter};

use dormouse_model::{ProgramEnd, ProgramExit};

/// The way in which a user's own program failed. `Display` writes a phrase that follows "its
/// program".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFailure {
    /// The program returned another status than 0.
    Status(i32),
    /// A signal ended the program.
    Signal(i32),
    /// The program returned 0, and the program that checks its answer returned this status.
    Check(i32),
    /// The program returned 0 with other outputs than the reference.
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
