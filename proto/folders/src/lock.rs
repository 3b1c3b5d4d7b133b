//! The owner of a place on the disk is the process that holds the lock on it, or, for a folder whose parent another
//! process made, on a file in it. A PID says nothing about a process in another container, and `/proc` knows none of
//! another PID namespace. The kernel's own lock does, in every namespace, and it goes with its holder however that
//! dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fs, io};

use crate::FolderError;

/// The lock on a file or a directory; dropping it releases the lock.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The outcome of trying to lock something.
#[derive(Debug)]
pub enum Tried {
    /// This process has the lock from now on.
    Ours(Lock),
    /// The lock is held already, by another process or by this one.
    SomebodyElses,
    /// No file has that name, or it was removed.
    Nothing,
}

/// Tries to lock what is at `path`. A link is not followed.
pub(crate) fn try_lock(path: &Path) -> io::Result<Tried> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Tried::Nothing),
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Tried::SomebodyElses),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    // Who held it may have removed it, and somebody else may have made it anew.
    let locked = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(now) if (now.dev(), now.ino()) == (locked.dev(), locked.ino()) => {
            Ok(Tried::Ours(Lock { _file: file }))
        }
        Ok(_) => Ok(Tried::Nothing),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Tried::Nothing),
        Err(e) => Err(e),
    }
}

/// Name of the file in a folder whose lock counts as the lock on the folder.
pub const LOCK: &str = "lock";

/// Tries to lock an existing folder through its file [`LOCK`], which is created if it is missing. A symbolic link in
/// place of the file is not followed.
///
/// # Errors
/// The file can't be made or locked.
pub fn try_lock_in(folder: &Path) -> Result<Tried, FolderError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let tried = match options.open(&path) {
        Ok(_) => try_lock(&path),
        // It has just been removed as an abandoned one.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Tried::Nothing),
        Err(e) => Err(e),
    };
    tried.map_err(|source| FolderError { action: "lock", path, source })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let Tried::Ours(first) = try_lock_in(folder.path()).unwrap() else { panic!("it is held") };
        assert!(matches!(try_lock_in(folder.path()), Ok(Tried::SomebodyElses)));
        drop(first);
        assert!(matches!(try_lock_in(folder.path()), Ok(Tried::Ours(_))));
        assert!(matches!(try_lock_in(&folder.path().join("gone")), Ok(Tried::Nothing)));
    }

    #[test]
    fn an_error_says_what_was_tried_and_has_what_the_kernel_said() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::os::unix::fs::symlink(&victim, folder.path().join(LOCK)).unwrap();
        let error = try_lock_in(folder.path()).unwrap_err();
        let lock = folder.path().join(LOCK);
        assert_eq!(error.to_string(), format!("can't lock {}", lock.display()));
        assert_eq!(io::Error::from(error).raw_os_error(), Some(libc::ELOOP));
        assert!(!fs::exists(victim).unwrap());
    }
}
