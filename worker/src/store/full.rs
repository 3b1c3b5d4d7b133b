//! A store that behaves like a full disk, as an experiment may request.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::{Result, StoreError};

/// Counter of the [`HeldFull`] values that exist: while it is above zero, the store behaves like a full disk.
#[derive(Clone, Debug, Default)]
pub(super) struct FullStore(Arc<AtomicU32>);

/// Guard that makes a store behave like a full disk until the guard is dropped.
#[derive(Debug)]
#[must_use]
pub struct HeldFull(FullStore);

/// Guard of a file system without free space, which is mounted over a directory until the guard is dropped.
#[derive(Debug)]
pub(super) struct NoRoom(PathBuf);

impl FullStore {
    pub(super) fn hold_full(&self) -> HeldFull {
        self.0.fetch_add(1, Ordering::Relaxed);
        HeldFull(self.clone())
    }

    pub(super) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for HeldFull {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl NoRoom {
    /// Mounts a full file system over `directory`: every write there fails, as the kernel finds no space left.
    ///
    /// # Errors
    ///
    /// The kernel refuses the mount.
    pub(super) fn over_directory(directory: &Path) -> Result<Self> {
        // The least that a tmpfs can have: one page, which its one file takes.
        let (flags, options) = (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "size=4k,nr_inodes=64");
        mount(Some("full"), directory, Some("tmpfs"), flags, Some(options)).map_err(|e| {
            StoreError::file_error("lay a full file system over", directory)(e.into())
        })?;
        let laid = Self(directory.to_owned());
        let filler = directory.join("full");
        std::fs::write(&filler, [0; 4096]).map_err(StoreError::file_error("fill", &filler))?;
        Ok(laid)
    }
}

impl Drop for NoRoom {
    fn drop(&mut self) {
        if let Err(error) = umount2(&self.0, MntFlags::MNT_DETACH) {
            tracing::warn!(%error, path = %self.0.display(), "the full file system, mounted for a fault of the experiment, can't be \
                     unmounted from the worker's folder");
        }
    }
}

/// Makes the error of a write for which no space is left.
pub(super) fn no_space() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSPC)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_store_is_full_while_anybody_holds_it_so() {
        let full = FullStore::default();
        let (one, two) = (full.hold_full(), full.hold_full());
        drop(one);
        assert!(full.is_held());
        drop(two);
        assert!(!full.is_held());
    }

    /// This needs root, for the mount.
    #[test]
    fn nothing_can_be_written_where_there_is_no_room() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI nothing is skipped");
            eprintln!("skipped: mounts need root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let laid = NoRoom::over_directory(directory.path()).unwrap();
        let error = fs::write(directory.path().join("pages-1.img"), "x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        drop(laid);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
