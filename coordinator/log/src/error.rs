//! Errors of reading and writing a log.

use std::io;
use std::path::PathBuf;

use crate::FORMAT;

/// Reason why a log can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log file can't be opened or read.
    #[error("can't read {}: {source}; {}", .path.display(), read_remedy(.source))]
    Read {
        /// The path of the log.
        path: PathBuf,
        /// The operating system's error when the log was read.
        source: io::Error,
    },
    /// Lines of the log can't be written or made durable.
    #[error(
        "can't write the event log {}: {source}; nothing more can be recorded; {}",
        .path.display(), write_remedy(.source)
    )]
    Write {
        /// The path of the log.
        path: PathBuf,
        /// The operating system's error when the log was written.
        source: io::Error,
    },
    /// Another process is writing the log.
    #[error(
        "{}: a run is still writing its log there; wait for its end, or give another folder", .path.display()
    )]
    UnderWay {
        /// The path of the log.
        path: PathBuf,
    },
    /// A line of the log, before its last one, is malformed.
    #[error("{}:{line}: {why}; give the folder of a run whose files are unchanged", .path.display())]
    Damaged {
        /// The path of the log.
        path: PathBuf,
        /// Number of the malformed line of the log, from 1.
        line: u64,
        /// Description of the damage to the log.
        why: String,
    },
    /// The log does not match the seal beside it.
    #[error(
        "{}: {why}; nothing was added to it: put back the files as the run left them, or have the log sealed as \
         it is, which is noted, by `dormouse resume {} --reseal`",
        .path.display(), .path.parent().unwrap_or(std::path::Path::new(".")).display()
    )]
    NotAsSealed {
        /// The path of the log.
        path: PathBuf,
        /// Description of the difference between the log and its seal.
        why: String,
    },
    /// The log has another version of the format.
    #[error(
        "{}:1: its format is {format}, this program reads {FORMAT}; use the version of Dormouse \
         that wrote it", .path.display()
    )]
    Format {
        /// The path of the log.
        path: PathBuf,
        /// Version of the format that the log is written in.
        format: u64,
    },
}

impl LogError {
    /// True if the disk was full, which may change later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let Self::Write { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// True if the user has to change the input.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::Format { .. }
            | Self::NotAsSealed { .. }
            | Self::UnderWay { .. } => true,
            Self::Read { source, .. } | Self::Write { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ReadOnlyFilesystem
            ),
        }
    }
}

fn write_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull => {
            "the disk is full: free space there, or write elsewhere with --out"
        }
        io::ErrorKind::QuotaExceeded => {
            "the disk quota is used up: free space there, or write elsewhere with --out"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "write where you may, with --out"
        }
        _ => "check the path and the disk, or write elsewhere with --out",
    }
}

fn read_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::NotADirectory => "a part of the path is a file: check it",
        io::ErrorKind::PermissionDenied => "read it as its owner, or as root",
        _ => "check the path and the disk",
    }
}
