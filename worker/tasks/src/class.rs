//! Problem classes.

/// A NAS problem class: the same program on a larger problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Sample: milliseconds.
    S,
    /// Workstation: seconds.
    W,
    /// The first full size.
    A,
    /// About four to sixteen times A.
    B,
}

impl Class {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "S" | "s" => Some(Self::S),
            "W" | "w" => Some(Self::W),
            "A" | "a" => Some(Self::A),
            "B" | "b" => Some(Self::B),
            _ => None,
        }
    }

    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
        }
    }
}
