//! Problem classes of the NAS benchmarks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A NAS problem class: the same program on a larger problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[schemars(rename = "Class")]
pub enum ProblemClass {
    /// Sample: milliseconds.
    S,
    /// Workstation: seconds.
    W,
    /// The first full size.
    A,
    /// About four to sixteen times A.
    B,
}

impl ProblemClass {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "S" | "s" => Some(Self::S),
            "W" | "w" => Some(Self::W),
            "A" | "a" => Some(Self::A),
            "B" | "b" => Some(Self::B),
            _ => None,
        }
    }

    pub(crate) fn class_letter(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
        }
    }

    /// Number of GridNPB ED tasks with reference values, counted from task 0. A bag with more tasks
    /// repeats them, since a task without a reference could not be verified.
    pub(crate) const fn ed_references(self) -> u32 {
        match self {
            Self::S | Self::W => 100,
            Self::A => 5,
            Self::B => 1,
        }
    }
}
