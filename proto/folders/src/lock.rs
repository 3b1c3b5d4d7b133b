//! The owner of a place on the disk is the process that holds the lock on it.
//!
//! A PID says nothing about a process in another container, and `/proc` knows none of another PID
//! namespace. The kernel's own lock does, in every namespace, and it goes with its holder however
//! that dies.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

/// The lock on a file or a directory; dropping it gives it up.
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
