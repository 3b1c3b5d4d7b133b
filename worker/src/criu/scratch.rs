//! Directories for the logs of checks.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use dormouse_folders::remove_tree;
use nix::fcntl::{Flock, FlockArg};

/// Beginning of the names of directories for CRIU's checks.
const PREFIX: &str = "dormouse-criu-check-";

/// A directory for the log of a check by CRIU, removed when dropped. The directory is locked until then: whoever creates the next
/// one removes unlocked directories, which a killed process has left.
#[derive(Debug)]
pub(super) struct ScratchDirectory {
    path: PathBuf,
    directory: Flock<File>,
}

impl ScratchDirectory {
    /// Creates a directory within `parent`.
    ///
    /// # Errors
    ///
    /// The path, and why nothing can be created there.
    pub(super) fn create_in(parent: &Path) -> Result<Self, (PathBuf, Error)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        sweep_unheld(parent);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                // A process of another PID namespace can have the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err((path, error)),
            }
            let directory = match File::open(&path) {
                Ok(directory) => directory,
                // Another process took it for one that nobody holds: it was not locked yet.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err((path, error)),
            };
            match Flock::lock(directory, FlockArg::LockExclusive) {
                Ok(directory) if path.is_dir() => return Ok(Self { path, directory }),
                Ok(_) => {}
                Err((_, error)) => return Err((path, error.into())),
            }
        }
    }

    /// Returns the directory's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory.
    pub(super) fn directory(&self) -> &File {
        &self.directory
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A leftover in the folder for temporary files is no reason to fail a check.
        let _ = remove_tree(&self.path);
    }
}

/// Removes all directories for checks below `parent` that nobody has locked. A directory that can't be removed is another user's.
fn sweep_unheld(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_scratch = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if !is_scratch || !entry.file_type().is_ok_and(|it| it.is_dir()) {
            continue;
        }
        let Ok(directory) = File::open(entry.path()) else { continue };
        if let Ok(_held) = Flock::lock(directory, FlockArg::LockExclusiveNonblock) {
            let _ = remove_tree(&entry.path());
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_held_stays() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{PREFIX}4711-0"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("check.log"), "half of a lo").unwrap();
        let other = parent.path().join("of-somebody-else");
        fs::create_dir(&other).unwrap();

        let first = ScratchDirectory::create_in(parent.path()).unwrap();
        assert!(!left.exists());
        let second = ScratchDirectory::create_in(parent.path()).unwrap();
        assert!(first.path().is_dir() && second.path().is_dir() && other.is_dir());
        assert_ne!(first.path(), second.path());

        let (was_first, was_second) = (first.path().to_owned(), second.path().to_owned());
        drop((first, second));
        assert!(!was_first.exists() && !was_second.exists() && other.is_dir());
        let nowhere = parent.path().join("nowhere");
        let (at, _) = ScratchDirectory::create_in(&nowhere).unwrap_err();
        assert!(at.starts_with(&nowhere));
    }
}
