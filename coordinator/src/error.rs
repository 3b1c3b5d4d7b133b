//! Why a live run could not be conducted.

use std::net::SocketAddr;
use std::path::PathBuf;

use dormouse_identity::IdentityError;
use dormouse_log::LogError;

use crate::admission::AdmissionError;
use crate::system::objects::ObjectError;

/// Beginning of the message to workers that their hosts can't hold the run.
pub const REFUSED: &str = "the run was refused: ";

/// Reasons why a live run ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The coordinator can't listen on its address.
    #[error("can't listen on {addr}{}", listen_remedy(.source))]
    Listen {
        /// The address on which the coordinator was to listen.
        addr: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The parameters of the run contradict each other.
    #[error("the run can't be conducted: {why}")]
    Invalid {
        /// The contradiction, and what would be right.
        why: String,
    },
    /// A file or folder of the run's output can't be created or written.
    #[error(
        "can't write {}{}; make room or choose another folder with --out",
        .path.display(),
        full_disk_hint(.source)
    )]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The object store for checkpoints can't be used.
    #[error("the checkpoint store: {}", .0)]
    Objects(ObjectError),
    /// An input file of tasks can't be used.
    #[error("the input {}: {why}; run it again with the file in its place", .path.display())]
    Input {
        /// Path of the file on this host.
        path: PathBuf,
        /// What is wrong with the file.
        why: String,
    },
    /// The identity of the run can't be created or kept.
    #[error("the run's identity: {}", .0)]
    Identity(#[from] IdentityError),
    /// The token file of a resumed run can't be used.
    #[error(
        "{}: {why}; put back the file that its workers were given, or remove it and give them the \
         new one",
        .path.display()
    )]
    Secret {
        /// The token's file in the run's folder.
        path: PathBuf,
        /// What is wrong with the token file.
        why: String,
    },
    /// The identity made before the run began can't be used.
    #[error("{}: {why}", .path.display())]
    GivenIdentity {
        /// The identity's folder, or the file in that folder.
        path: PathBuf,
        /// What is wrong with the folder or file, and the remedy.
        why: String,
    },
    /// The event log can't be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The hosts can't hold the experiment.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The log to be resumed belongs to a different run, or doesn't fit this one.
    #[error("{} can't be resumed: {why}", .path.display())]
    Resume {
        /// Path of the log.
        path: PathBuf,
        /// The part that doesn't fit, in words for the user.
        why: String,
    },
    /// A worker has received more commands than the log of the resumed run has for it.
    #[error(
        "the log is older than its run: it has {said} commands to {worker}, which has received \
         {ack}; nothing was added to it: put back the newest events.jsonl and seal.json of the run; \
         if these are the newest, end that worker, whose count is wrong, and resume again"
    )]
    LogWentBack {
        /// Name of the worker in the log.
        worker: String,
        /// Number of commands that the worker has received.
        ack: u64,
        /// Number of commands to the worker in the log.
        said: u64,
    },
    /// The gRPC server ended unexpectedly.
    #[error("the coordinator's server on {addr} ended: {why}")]
    Server {
        /// The address and port that the server served.
        addr: SocketAddr,
        /// What made the server end, in words for the user.
        why: String,
    },
    /// The run was paused: its log is complete, and it can be resumed.
    #[error("the run is paused: {why}")]
    Paused {
        /// Who paused the run, or what went wrong.
        why: String,
    },
    /// A scheduler that is a program failed. The log is complete, and the run can be resumed.
    #[error("{why}")]
    Scheduler {
        /// What the scheduler's program did, as a sentence.
        why: String,
    },
    /// A part of the coordinator failed: a bug in it, or in the scheduler that it runs.
    #[error("the {part} failed, so the run was ended and its workers clean up: {why}")]
    Part {
        /// Name of the part, to be written after "the".
        part: &'static str,
        /// Message of the panic.
        why: String,
    },
}

impl CoordinatorError {
    /// Returns whether the run can be resumed unchanged.
    #[must_use]
    pub const fn can_be_gone_on_with(&self) -> bool {
        matches!(self, Self::Paused { .. } | Self::Scheduler { .. } | Self::LogWentBack { .. })
    }
}

fn listen_remedy(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::AddrInUse => {
            ": another program listens there; end it, or choose another port (0: any free one)"
        }
        std::io::ErrorKind::PermissionDenied => {
            ": ports below 1024 need root; choose another one (0: any free one)"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            ": this machine has no such address; use 127.0.0.1, 0.0.0.0 or one of its own"
        }
        _ => "",
    }
}

/// Returns a hint in words if the disk is full, which is the usual cause.
pub(crate) fn full_disk_hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull => ": the disk is full",
        std::io::ErrorKind::QuotaExceeded => ": the disk quota is used up",
        std::io::ErrorKind::ReadOnlyFilesystem => ": the file system is read-only",
        std::io::ErrorKind::PermissionDenied => ": permission denied",
        _ => "",
    }
}
