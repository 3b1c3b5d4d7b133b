//! Reasons for which a log of jobs can't be read.

use std::io;
use std::path::PathBuf;

use super::problem::LineProblem;
use super::skipped::Skipped;

/// Reason why a log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SwfError {
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Io {
        /// The file of the log.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A job of the log is malformed.
    #[error("{}, line {line}: {problem}; correct the line, or have malformed jobs skipped", path.display())]
    Malformed {
        /// The file of the log.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The problem with the job's line.
        problem: LineProblem,
    },
    /// The log has no job that can be run.
    #[error("{} has no job that can be run: {skipped}; give a log with jobs", path.display())]
    Empty {
        /// The file of the log.
        path: PathBuf,
        /// Jobs that were left out, by reason.
        skipped: Box<Skipped>,
    },
    /// The log does not say how large its machine is.
    #[error("{} does not say how many processors its machine has (MaxProcs); give the number", path.display())]
    NoMachine {
        /// The file of the log.
        path: PathBuf,
    },
    /// The size of the machine that the log gives can't be read.
    #[error(
        "{}: {what}; write a number there, or give the number of processors", path.display()
    )]
    UnreadMachine {
        /// The file of the log.
        path: PathBuf,
        /// What is wrong with the given size of the machine, in words.
        what: String,
    },
    /// The file has a known format but can't be used.
    #[error("{}: {what}; {remedy}", path.display())]
    Unusable {
        /// The file of the log.
        path: PathBuf,
        /// Reason why the file of a known format can't be used, in words.
        what: String,
        /// What the user should do about the unusable file, in words.
        remedy: String,
    },
}
