//! How much a task's directory holds.

use std::{cell::RefCell, collections::BTreeSet, path::Path};

use dormouse_units::Bytes;
use nix::sys::statvfs::fstatvfs;

use super::{DirectoryError, FoundNode, Result, handle::DirectoryHandle, walk_past};

/// Returns the bytes of all files in a directory, holes included; a file with several names counts once.
///
/// # Errors
/// The directory cannot be read, or has too much in it.
pub fn directory_size(directory: &Path) -> Result<Bytes> {
    let files = RefCell::new(Vec::new());
    let see = |found: &FoundNode<'_>| {
        if found.is_file() {
            files.borrow_mut().push((found.stat, found.bytes()));
        }
        Ok(())
    };
    // Whatever name a task gives a file, it counts; one in a directory that can't be entered does not.
    walk_past(directory, see, |found, _| see(found))?;
    let (mut bytes, mut seen) = (0_u64, BTreeSet::new());
    for (stat, length) in files.into_inner() {
        if stat.st_nlink <= 1 || seen.insert((stat.st_dev, stat.st_ino)) {
            bytes = bytes.saturating_add(length);
        }
    }
    Ok(Bytes::new(bytes))
}

/// Returns whether nothing more can be written in a directory, as its quota is used up.
///
/// # Errors
///
/// The directory can't be opened.
pub fn is_full(directory: &Path) -> Result<bool> {
    let stat = DirectoryHandle::open(directory).and_then(|handle| Ok(fstatvfs(handle)?));
    let stat = stat
        .map_err(DirectoryError::file_error("ask for the size of the file system of", directory))?;
    Ok(stat.blocks_available() == 0 || (stat.files() > 0 && stat.files_available() == 0))
}
