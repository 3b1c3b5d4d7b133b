//! The programs that a soak runs: copies, which a build does not change.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::GIVEN;

/// A folder of programs: `dormouse`, `dormouse-task`, `simulate`, `fuzz` (a script), and tests in `tests`.
#[derive(Clone, Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// The programs in this folder.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn has(&self, program: &str) -> bool {
        self.0.join(program).exists()
    }

    /// A command that runs a program with its temporary files in `scratch`.
    pub(super) fn command(&self, program: &str, scratch: &Path) -> Command {
        let mut command = Command::new(self.0.join(program));
        command.env(GIVEN, self.0.join("dormouse")).env("CI", "true").env("TMPDIR", scratch);
        command
    }

    /// A command that runs `dormouse` with these words.
    pub(super) fn dormouse(&self, words: &[&str], scratch: &Path) -> Command {
        let mut command = self.command("dormouse", scratch);
        command.args(words);
        command
    }
}
