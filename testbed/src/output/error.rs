//! What can go wrong with outputs.

use std::io;
use std::path::{Path, PathBuf};

use dormouse_log::LogError;

use crate::command_line::command_line;

/// Why outputs can't be written, or a log not read.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder holds something else.
    #[error(
        "--out {}: it is not empty and no former run's folder; give another, or --force to write \
         into it", .0.display()
    )]
    NotARun(PathBuf),
    /// The folder holds a run that would be lost.
    #[error(
        "--out {}: it holds {}; give another folder, or --force to replace that", .path.display(),
        another(.command.as_deref(), .changed.as_deref())
    )]
    AnotherRun {
        /// The folder.
        path: PathBuf,
        /// The command of the run in it; `None`: its log can't be read.
        command: Option<String>,
        /// That run is the same but for this file, which has changed since.
        changed: Option<PathBuf>,
    },
    /// A file that a run was made of holds something else by now.
    #[error(
        "{}: it has changed since the run was made of it; put back what it held, or make the run \
         again, into another folder or with --force: `{command}`", .file.display()
    )]
    Changed {
        /// The file.
        file: PathBuf,
        /// The command of the run.
        command: String,
    },
    /// The folder holds a live run that was ended half-way.
    #[error(
        "--out {}: it holds a live run that did not come to its end; `{}` goes on with it, \
         --force replaces it",
        .0.display(),
        command_line(["dormouse", "resume", &.0.to_string_lossy()])
    )]
    Unfinished(PathBuf),
    /// It is no folder.
    #[error("--out {}: it is a file; give a folder, or one to be made", .0.display())]
    IsAFile(PathBuf),
    /// The system refused.
    #[error("cannot {doing} {}: {source}; {}", .path.display(), remedy(.source))]
    Io {
        /// What was tried, as it stands after "cannot".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The summary of a run does not have what every summary has.
    #[error("{}: there is no {key} in it; give the folder of a run that was left whole", .path.display())]
    NoKey {
        /// The summary.
        path: PathBuf,
        /// What it should have.
        key: &'static str,
    },
    /// The log of a run can't be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl OutputError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    /// Whether it is the user's input that has to change.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NotARun(_)
            | Self::AnotherRun { .. }
            | Self::Changed { .. }
            | Self::Unfinished(_)
            | Self::IsAFile(_)
            | Self::NoKey { .. } => true,
            Self::Log(error) => error.is_bad_input(),
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ReadOnlyFilesystem
            ),
        }
    }
}

fn another(command: Option<&str>, changed: Option<&Path>) -> String {
    match (command, changed) {
        (Some(command), Some(file)) => {
            format!("the run of `{command}`, and {} has changed since", file.display())
        }
        (Some(command), None) => format!("the run of `{command}`"),
        (None, _) => "a run that can't be read".to_owned(),
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or write elsewhere with --out"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "write where you may, with --out"
        }
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::NotADirectory => "a part of the path is a file: check it",
        _ => "check the path and the disk",
    }
}
