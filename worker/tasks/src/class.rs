//! Problem classes of the NAS benchmarks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A NAS problem class: the same program on a larger problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[schemars(rename = "Class")]
pub enum ProblemClass {
    /// Class S (sample), which takes milliseconds.
    S,
    /// Class W (workstation), which takes seconds.
    W,
    /// Class A, the first full size.
    A,
    /// Class B, about four to sixteen times the work of class A.
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

    /// Returns the number of GridNPB ED tasks with published values, counted from task 0. A bag with more tasks repeats these,
    /// since the answer of a task without published values could not be verified.
    pub(crate) const fn ed_references(self) -> u32 {
        match self {
            Self::S | Self::W => 100,
            Self::A => 5,
            Self::B => 1,
        }
    }
}
