//! How a program of the user's own ended, and what it left.

use dormouse_units::Bytes;
use serde::{Deserialize, Serialize};

/// How a program of the user's own ended, and what it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnEnd {
    /// How the program ended; `None` where it was ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProgramExit>,
    /// The status of the program that checked its answer; `None` where there was none, or it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_status: Option<i32>,
    /// The standard output and error, named `stdout` and `stderr`, and the outputs of the program, each
    /// named `outputs/` and its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<KeptFile>,
    /// Why a file that was to be kept was not, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<String>,
    /// What of its time it did not want to compute in, real microseconds: it slept, or waited for something.
    pub real_waited_us: u64,
    /// The most memory that it had at once.
    pub memory: Bytes,
    /// What its directory held in the end.
    pub directory: Bytes,
}

impl OwnEnd {
    /// The folder of the outputs among the files that are kept.
    pub const OUTPUTS: &'static str = "outputs";

    /// Whether the program returned status 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit == Some(ProgramExit::Status(0))
    }

    /// The digest of the output that has this path in its directory, in hexadecimal.
    #[must_use]
    pub fn output(&self, path: &str) -> Option<&str> {
        let is_it = |file: &&KeptFile| {
            let output = file.path.strip_prefix(Self::OUTPUTS).and_then(|it| it.strip_prefix('/'));
            output == Some(path)
        };
        self.files.iter().find(is_it).map(|file| file.digest.as_str())
    }
}

/// The end of a program: the status that it returned, or the signal that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramExit {
    /// It returned this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
}

/// A file of a task's that is kept in its run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// The path in the task's folder.
    pub path: String,
    /// BLAKE3 of its content, in hexadecimal.
    pub digest: String,
    /// Length of its content.
    pub bytes: Bytes,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}
