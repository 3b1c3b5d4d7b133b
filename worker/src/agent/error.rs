//! Why an agent can't begin or go on.

use std::{io, path::PathBuf, time::Duration};

use crate::{cgroup, cleanup, criu, jail, process, store, workspace};

/// The result of an agent's call.
pub type Result<T, E = AgentError> = std::result::Result<T, E>;

/// Why an agent can't begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The coordinator's address is none.
    #[error("\"{address}\" is not an address of a coordinator; give host:port")]
    Address {
        /// The address as it was given.
        address: String,
        /// What is wrong with it.
        source: tonic::transport::Error,
    },
    /// The file with the token of the run can't be used.
    #[error(
        "{}: {why}; give a copy of the file `secret` in the run's folder on the coordinator's host",
        path.display()
    )]
    Secret {
        /// The file that was given as the token's.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// TLS can't be set up.
    #[error("TLS can't be set up")]
    Identity(#[from] dormouse_identity::IdentityError),
    /// The coordinator doesn't take this worker.
    #[error("the coordinator at {address} refuses this worker: {why}")]
    Refused {
        /// The address of the coordinator.
        address: String,
        /// In its words.
        why: String,
    },
    /// The worker's control groups cannot be set up.
    #[error("the worker's control groups can't be set up")]
    Cgroup(#[source] cgroup::Error),
    /// The guardian or another process.
    #[error("the worker's processes can't be set up")]
    Process(#[source] process::Error),
    /// The worker's directory.
    #[error("the worker's directory can't be set up")]
    Workspace(#[source] workspace::Error),
    /// A part of the tasks' jail can't be had here, and all of it is demanded.
    #[error(
        "the jail of tasks can't be set up here; {remedy}; or start with --jail partial, which \
         leaves out the missing parts"
    )]
    Jail {
        /// What to add in this place.
        remedy: String,
        /// The part that is lacking, and why.
        source: jail::Error,
    },
    /// CRIU does not work in the tasks' jail.
    #[error(
        "CRIU does not work in the jail of tasks, which holds only its own folder and /usr; give \
         --criu the program itself, or start with --jail none"
    )]
    JailCriu(#[source] Box<criu::Error>),
    /// The checkpoint store.
    #[error("the worker's checkpoint store can't be opened")]
    Store(#[source] store::Error),
    /// The contents of files with which tasks begin can't be kept.
    #[error(
        "the folder `contents` in the worker's own folder can't be used; check that it is writable"
    )]
    Contents(#[source] std::io::Error),
    /// The worker's directory has been removed under it.
    #[error(
        "the folder `tasks` in the worker's own folder is gone ({} for its tasks): no task can be \
         started or saved without it; everything is cleaned up, start the worker again",
        path.display()
    )]
    FolderGone {
        /// What was there.
        path: PathBuf,
    },
    /// What a crashed worker left.
    #[error("what an earlier worker left behind can't be cleaned up")]
    CleanUp(#[source] cleanup::Error),
    /// A thread, a runtime or a signal handler.
    #[error("can't start {what}")]
    Runtime {
        /// The thread, runtime or handler that was to be started.
        what: &'static str,
        /// The system's own error.
        source: io::Error,
    },
    /// The coordinator can't be reached, or was silent for too long.
    #[error(
        "nothing was heard from the coordinator at {address} for {} ms: {why}; everything is \
         cleaned up, start the worker again once the coordinator runs",
        after.as_millis()
    )]
    Lost {
        /// The address of the coordinator.
        address: String,
        /// For how long.
        after: Duration,
        /// What was tried last, and what came of it.
        why: String,
    },
    /// The coordinator and this worker do not understand each other.
    #[error("the coordinator sent {what}; use the same version of dormouse on both sides")]
    Protocol {
        /// The part of its message that makes no sense here.
        what: String,
    },
    /// A program to be measured does not run here.
    #[error("the program `{program}` can't be measured: {why}")]
    Measure {
        /// The arguments of the program, joined by spaces.
        program: String,
        /// What went wrong, with its causes.
        why: String,
    },
    /// The owner of a VM has panicked.
    #[error("a bug in the worker: {what}; everything is cleaned up")]
    Bug {
        /// What the panic said.
        what: String,
    },
    /// Something is left that should be gone.
    #[error("not everything could be cleaned up; starting a worker with {} again cleans up the rest", root.display())]
    Left {
        /// The worker's directory.
        root: PathBuf,
        /// What is in the way.
        source: cgroup::Error,
    },
}

impl AgentError {
    /// Whether what the worker was told must change, not the system be mended.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::Secret { .. } | Self::Refused { .. })
    }
}
