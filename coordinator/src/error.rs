//! Why a live run could not be conducted.

use std::net::SocketAddr;
use std::path::PathBuf;

use dormouse_identity::IdentityError;
use dormouse_log::LogError;

use crate::admission::AdmissionError;
use crate::system::objects::ObjectError;

/// The beginning of what a worker is told of a run that its hosts can't hold.
pub const REFUSED: &str = "the run was refused: ";

/// Why a live run ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// The address cannot be listened on.
    #[error("can't listen on {addr}{}", listen_remedy(.source))]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The run's particulars contradict each other.
    #[error("the run can't be conducted: {why}")]
    Invalid {
        /// What is wrong and what would be right.
        why: String,
    },
    /// A file or folder of the run's output cannot be made or written.
    #[error(
        "can't write {}{}; make room or choose another folder with --out",
        .path.display(),
        full_disk_hint(.source)
    )]
    Output {
        /// The file or folder that can't be made or written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store of objects that is to have the checkpoints can't be used.
    #[error("the checkpoint store: {}", .0)]
    Objects(ObjectError),
    /// A file that tasks begin with can't be had.
    #[error("the input {}: {why}; run it again with the file in its place", .path.display())]
    Input {
        /// The path of the file on this host.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The identity of the run can't be made or kept.
    #[error("the run's identity: {}", .0)]
    Identity(#[from] IdentityError),
    /// The file with a token of a run that is gone on with can't be used.
    #[error(
        "{}: {why}; put back the file that its workers were given, or remove it and give them the \
         new one",
        .path.display()
    )]
    Secret {
        /// The token's file in the run's folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The identity that was made before the run can't be used.
    #[error("{}: {why}", .path.display())]
    GivenIdentity {
        /// The folder, or the file in it, that can't be used.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        why: String,
    },
    /// The event log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The hosts cannot hold the experiment.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The log of the run to be resumed is of another run, or tells another story.
    #[error("{} can't be resumed: {why}", .path.display())]
    Resume {
        /// Path of the log.
        path: PathBuf,
        /// What of the log does not fit this run, in words for a user.
        why: String,
    },
    /// A worker has taken more commands than the log of the run that is gone on with has of it.
    #[error(
        "the log went back: it has {said} commands to {worker}, which has taken {ack}; nothing was added to it: put back the \
         newest events.jsonl and seal.json of the run, or end that worker, which lies if these are the newest, and go on"
    )]
    LogWentBack {
        /// The worker, as the log names it.
        worker: String,
        /// The number of commands that it has taken.
        ack: u64,
        /// The number of commands to it that the log has.
        said: u64,
    },
    /// The gRPC server ended by itself.
    #[error("the coordinator's server on {addr} ended: {why}")]
    Server {
        /// The address and port that it served.
        addr: SocketAddr,
        /// What made it end, in words for a user.
        why: String,
    },
    /// The run was told to pause: its log is whole, and it can be gone on with.
    #[error("the run is paused: {why}")]
    Paused {
        /// Who wanted it, or what went wrong.
        why: String,
    },
    /// A scheduler that is a program of its own failed. The run's log is whole, and the run can be
    /// gone on with.
    #[error("{why}")]
    Scheduler {
        /// What it did, as a sentence.
        why: String,
    },
    /// A part of the coordinator failed: a bug of it, or of the scheduler it runs.
    #[error("the {part} failed, so the run was ended and its workers told to clean up: {why}")]
    Part {
        /// The part's name, as it stands after "the".
        part: &'static str,
        /// The panic's message.
        why: String,
    },
}

impl CoordinatorError {
    /// Whether the run can be gone on with as it is.
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

/// Says so where the disk is full: the usual cause.
pub(crate) fn full_disk_hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull => ": the disk is full",
        std::io::ErrorKind::QuotaExceeded => ": the disk quota is used up",
        std::io::ErrorKind::ReadOnlyFilesystem => ": the file system is read-only",
        std::io::ErrorKind::PermissionDenied => ": permission denied",
        _ => "",
    }
}
