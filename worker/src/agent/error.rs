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
    #[error("\"{address}\" is no address of a coordinator; give host:port")]
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
    #[error("connections can't be secured")]
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
    #[error("the worker's control groups cannot be set up")]
    Cgroup(#[source] cgroup::CgroupError),
    /// The guardian or another process.
    #[error("the worker's processes cannot be set up")]
    Process(#[source] process::ProcessError),
    /// The worker's directory.
    #[error("the worker's directory cannot be set up")]
    Workspace(#[source] workspace::WorkspaceError),
    /// A part of the tasks' jail can't be had here, and all of it is demanded.
    #[error(
        "the jail of tasks can't be had here; {remedy}; or begin with --jail partial, which leaves out what \
         can't be had"
    )]
    Jail {
        /// What to add in this place.
        remedy: String,
        /// The part that is lacking, and why.
        source: jail::JailError,
    },
    /// CRIU does not work in the tasks' jail.
    #[error(
        "CRIU does not work in the jail of tasks, which shows it its own folder and /usr; give --criu the \
         program itself, or begin with --jail none"
    )]
    JailCriu(#[source] Box<criu::CriuError>),
    /// The checkpoint store.
    #[error("the worker's checkpoint store cannot be opened")]
    Store(#[source] store::StoreError),
    /// The contents of files with which tasks begin can't be kept.
    #[error(
        "the directory `contents` in the worker's own can't be used; see to it that it can be written"
    )]
    Contents(#[source] std::io::Error),
    /// The worker's directory has been removed under it.
    #[error(
        "the folder `tasks` in the worker's own folder is gone ({} for its tasks): nothing can be started or kept without it; everything is cleaned up, start the \
         worker again",
        path.display()
    )]
    FolderGone {
        /// What was there.
        path: PathBuf,
    },
    /// What a crashed worker left.
    #[error("what a former worker left cannot be cleaned up")]
    CleanUp(#[source] cleanup::CleanupError),
    /// A thread, a runtime or a signal handler.
    #[error("cannot start {what}")]
    Runtime {
        /// The thread, runtime or handler that was to be started.
        what: &'static str,
        /// The system's own error.
        source: io::Error,
    },
    /// The coordinator can't be reached, or was silent for too long.
    #[error(
        "the coordinator at {address} was not heard of for {} ms: {why}; \
         everything is cleaned up, start the worker again once it runs",
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
    #[error("the program `{program}` cannot be measured: {why}")]
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
    #[error("not everything could be cleaned up; the next start of a worker with {} will", root.display())]
    Left {
        /// The worker's directory.
        root: PathBuf,
        /// What is in the way.
        source: cgroup::CgroupError,
    },
}

impl AgentError {
    /// Whether what the worker was told must change, not the system be mended.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Address { .. } | Self::Secret { .. } | Self::Refused { .. })
    }
}
