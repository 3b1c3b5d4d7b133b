//! The parts of a jail, and how much of it a worker's owner demands.

use std::{fmt, str::FromStr};

/// A part of a jail, which may be unavailable if the worker itself is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JailPart {
    /// The task runs as a user of its own, without capabilities.
    User,
    /// The task has a mount namespace with a root of its own.
    Mounts,
    /// The task has a network namespace with only its own loopback.
    Network,
    /// The task has a namespace of its own for System V IPC and POSIX message queues.
    Ipc,
    /// The task sees the name of its VM as the host's name.
    Name,
    /// The task may make only listed system calls.
    Filter,
    /// The task's number of processes is bounded.
    Pids,
}

impl JailPart {
    /// All parts, in the order in which a task enters them.
    pub const ALL: [Self; 7] =
        [Self::Mounts, Self::Network, Self::Ipc, Self::Name, Self::User, Self::Filter, Self::Pids];

    /// Returns the part in words, as a phrase that follows "a task has".
    #[must_use]
    pub const fn part_words(self) -> &'static str {
        match self {
            Self::User => "a user of its own",
            Self::Mounts => "a mount namespace of its own",
            Self::Network => "a network namespace of its own",
            Self::Ipc => "an IPC namespace of its own",
            Self::Name => "a host name of its own",
            Self::Filter => "a filter of system calls",
            Self::Pids => "a bound on its processes",
        }
    }

    /// Returns the capabilities that the worker needs for the part, named without `CAP_`.
    #[must_use]
    pub const fn needed_capabilities(self) -> &'static [&'static str] {
        match self {
            Self::User => &["SETUID", "SETGID", "CHOWN"],
            Self::Mounts => &["SYS_ADMIN", "SYS_CHROOT"],
            Self::Network => &["SYS_ADMIN", "NET_ADMIN"],
            Self::Ipc | Self::Name | Self::Filter => &["SYS_ADMIN"],
            Self::Pids => &[],
        }
    }
}

/// The parts of a jail that tasks must have for a worker to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JailDemand {
    /// All parts are demanded; else the worker does not start.
    #[default]
    Full,
    /// The tasks get the parts that are available on this host; the worker logs which are missing.
    Partial,
    /// No jail: tasks run as the worker's user.
    None,
}

/// Error: the contained text isn't the name of a demand on the jail.
#[derive(Debug, thiserror::Error)]
#[error("{0}: no such jail; give full, partial or none")]
pub struct DemandError(String);

impl FromStr for JailDemand {
    type Err = DemandError;

    fn from_str(text: &str) -> Result<Self, DemandError> {
        match text {
            "full" => Ok(Self::Full),
            "partial" => Ok(Self::Partial),
            "none" => Ok(Self::None),
            other => Err(DemandError(other.to_owned())),
        }
    }
}

impl fmt::Display for JailDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        })
    }
}
