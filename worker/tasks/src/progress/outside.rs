//! Words of a progress page that are set from outside the task.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use super::ProgressError;
use super::value::{AT_HOLD, AT_OWN, PAGE_BYTES};
use crate::left;

/// Creates a progress page before its task starts; the task will wait before its first unit of work until [`let_go`] is called. The
/// file gets the owner of its folder, who is the task's user.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be created or written.
pub fn create_held(path: &Path) -> Result<(), ProgressError> {
    let mut page = [0; PAGE_BYTES];
    page[AT_HOLD * 8] = 1;
    let made = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o644);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
        file.write_all_at(&page, 0)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let (folder, own) = (fs::metadata(folder)?, file.metadata()?);
        if (folder.uid(), folder.gid()) != (own.uid(), own.gid()) {
            fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
        }
        Ok(())
    };
    made().map_err(|source| ProgressError::Io { path: path.to_path_buf(), what: "created", source })
}

/// Lets a task begin its work that waits since [`create_held`] made its page.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be opened or written.
pub fn let_go(path: &Path) -> Result<(), ProgressError> {
    let at = (AT_HOLD * 8) as u64;
    left::open(path, OpenOptions::new().write(true))
        .and_then(|file| file.write_all_at(&[0; 8], at))
        .map_err(|source| ProgressError::Io { path: path.to_path_buf(), what: "written", source })
}

/// The part of a progress page that keeps a task's CPU clock across restores. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// CPU time that the task's own clock showed when the task was last stopped, in nanoseconds.
    pub own: i64,
    /// The part of the CPU time of the task's thread that is not the task's own, in nanoseconds.
    pub foreign: i64,
}

/// Sets a stopped task's clock.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be opened or written.
pub fn set_clock(path: &Path, clock: Clock) -> Result<(), ProgressError> {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&clock.own.to_le_bytes());
    words[8..].copy_from_slice(&clock.foreign.to_le_bytes());
    left::open(path, OpenOptions::new().write(true))
        .and_then(|file| file.write_all_at(&words, (AT_OWN * 8) as u64))
        .map_err(|source| ProgressError::Io { path: path.to_path_buf(), what: "written", source })
}
