//! Errors: an agent can't start or continue.

use std::{io, path::PathBuf, time::Duration};

use crate::{cgroup, cleanup, criu, jail, process, store, workspace};

/// Result of an agent's function.
pub type Result<T, E = AgentError> = std::result::Result<T, E>;

/// Error: an agent can't start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The coordinator's address is invalid.
    #[error("\"{address}\" is not an address of a coordinator; give host:port")]
    Address {
        /// The given address.
        address: String,
        /// What is wrong with the address.
        source: tonic::transport::Error,
    },
    /// The file with the run's token can't be used.
    #[error(
        "{}: {why}; give a copy of the file `secret` in the run's folder on the coordinator's host",
        path.display()
    )]
    Secret {
        /// Path of the token file.
        path: PathBuf,
        /// What is wrong with the token file.
        why: String,
    },
    /// TLS can't be set up.
    #[error("TLS can't be set up")]
    Identity(#[from] dormouse_identity::IdentityError),
    /// The coordinator refuses this worker.
    #[error("the coordinator at {address} refuses this worker: {why}")]
    Refused {
        /// Address of the coordinator.
        address: String,
        /// The coordinator's reason for refusing the worker, in words.
        why: String,
    },
    /// The worker's control groups can't be set up.
    #[error("the worker's control groups can't be set up")]
    Cgroup(#[source] cgroup::CgroupError),
    /// The process that cleans up after the worker (the guardian), or another process, failed.
    #[error("the worker's processes can't be set up")]
    Process(#[source] process::ProcessError),
    /// The worker's directory can't be used.
    #[error("the worker's directory can't be set up")]
    Workspace(#[source] workspace::WorkspaceError),
    /// A part of the tasks' jail isn't available on this host, and the user demands a full jail.
    #[error(
        "the jail of tasks can't be set up here; {remedy}; or start with --jail partial, which \
         leaves out the missing parts"
    )]
    Jail {
        /// What would make the part available on this host.
        remedy: String,
        /// The missing part, and why it is missing.
        source: jail::JailError,
    },
    /// CRIU doesn't work in the tasks' jail.
    #[error(
        "CRIU does not work in the jail of tasks, which holds only its own folder and /usr; give \
         --criu the program itself, or start with --jail none"
    )]
    JailCriu(#[source] Box<criu::CriuError>),
    /// The checkpoint store can't be used.
    #[error("the worker's checkpoint store can't be opened")]
    Store(#[source] store::StoreError),
    /// The contents of tasks' input files can't be stored.
    #[error(
        "the folder `contents` in the worker's own folder can't be used; check that it is writable"
    )]
    Contents(#[source] std::io::Error),
    /// The worker's directory was removed while the worker ran.
    #[error(
        "the folder `tasks` in the worker's own folder is gone ({} for its tasks): no task can be \
         started or saved without it; everything is cleaned up, start the worker again",
        path.display()
    )]
    FolderGone {
        /// Path of the missing directory.
        path: PathBuf,
    },
    /// Cleaning up after a crashed worker failed.
    #[error("what an earlier worker left behind can't be cleaned up")]
    CleanUp(#[source] cleanup::CleanupError),
    /// A thread, a runtime or a signal handler can't be started.
    #[error("can't start {what}")]
    Runtime {
        /// Name of the thread, runtime or handler.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The coordinator can't be reached, or has sent nothing for too long.
    #[error(
        "nothing was heard from the coordinator at {address} for {} ms: {why}; everything is \
         cleaned up, start the worker again once the coordinator runs",
        after.as_millis()
    )]
    Lost {
        /// Address of the coordinator.
        address: String,
        /// Time since the coordinator's last message.
        after: Duration,
        /// Result of the last attempt to reach the coordinator.
        why: String,
    },
    /// The coordinator and this worker don't understand each other.
    #[error("the coordinator sent {what}; use the same version of dormouse on both sides")]
    Protocol {
        /// The part of a message that makes no sense at this point.
        what: String,
    },
    /// A program that is to be measured doesn't run on this host.
    #[error("the program `{program}` can't be measured: {why}")]
    Measure {
        /// Arguments of the program, joined by spaces.
        program: String,
        /// The failure of the program, with its causes.
        why: String,
    },
    /// The asynchronous task that manages a VM has panicked: a bug.
    #[error("a bug in the worker: {what}; everything is cleaned up")]
    Bug {
        /// Message of the panic.
        what: String,
    },
    /// Control groups are left that should have been removed.
    #[error("not everything could be cleaned up; starting a worker with {} again cleans up the rest", root.display())]
    Left {
        /// The worker's directory.
        root: PathBuf,
        /// Why the control groups could not be removed.
        source: cgroup::CgroupError,
    },
}

impl AgentError {
    /// Returns whether the user must change the worker's configuration, rather than repair the system.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::Secret { .. } | Self::Refused { .. })
    }
}
