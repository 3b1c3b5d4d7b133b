//! What a CRIU can do on this kernel.

use std::{fmt, path::PathBuf};

use super::Error;

/// A CRIU version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number of the version.
    pub major: u32,
    /// The second number of the version.
    pub minor: u32,
    /// The third number of the version.
    pub sublevel: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.sublevel)
    }
}

/// The finding of [`Criu::probe`](super::Criu::probe).
#[derive(Debug)]
pub struct Probe {
    /// The program probed.
    pub program: PathBuf,
    /// The program's version; `None` where it could not be started.
    pub version: Option<Version>,
    /// What `criu check` says, or why the program does not even start.
    pub check: Result<(), Error>,
    /// Whether dumps relative to an earlier one are possible (`CONFIG_MEM_SOFT_DIRTY`).
    pub mem_track: bool,
    /// Whether pages can be restored on demand.
    pub lazy_pages: bool,
    /// Whether CRIU can hold on to processes by pidfds.
    pub pidfd_store: bool,
}

impl Probe {
    /// Whether checkpoints can be taken.
    #[must_use]
    pub fn usable(&self) -> bool {
        self.check.is_ok()
    }
}
