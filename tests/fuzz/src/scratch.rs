//! A folder for readers that take a path: one for each thread, removed with the process.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder of this thread, in which a file is overwritten for each input.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        // In memory where that is there: thousands of files a second are written.
        let memory = Path::new("/dev/shm");
        let made = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
        Self(made.expect("room for a folder"))
    }

    /// Runs `work` with the folder of this thread.
    pub(crate) fn with<T>(work: impl FnOnce(&Self) -> T) -> T {
        thread_local!(static OWN: Scratch = Scratch::new());
        OWN.with(work)
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file into the folder and returns its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("room for a file");
        path
    }
}
