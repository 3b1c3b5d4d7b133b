//! Putting a task's directory back as it was.

use std::{ffi::OsStr, fs::File, io, path::Path};

use blake3::Hash;
use dormouse_folders::empty_tree;
use nix::{
    fcntl::AtFlags,
    sys::{
        stat::{Mode, fchmod, futimens},
        time::{TimeSpec, TimeValLike as _},
    },
    unistd::{fchownat, linkat, mkfifoat, symlinkat},
};

use super::{
    ContentObjects, DirectoryError, DirectoryNode, NodeKind, Result,
    attributes::set_attributes,
    handle::{DirectoryHandle, FileOwner},
    snapshot::{DIRECTORY_PERMISSIONS, PERMISSIONS},
};
use crate::sparse::copy_whole;

/// Makes a directory as the nodes describe it, with the contents of its files from `objects`. Everything else in it is removed. All
/// that is made belongs to the owner of the directory, which must not be in use.
///
/// # Errors
///
/// A content is missing, something can't be written, or there is no room.
pub(crate) fn restore_directory(
    directory: &Path,
    nodes: &[DirectoryNode],
    objects: &ContentObjects,
) -> Result<()> {
    let root =
        DirectoryHandle::open(directory).map_err(DirectoryError::file_error("open", directory))?;
    empty_directory(&root, directory)?;
    let owner = root.read_owner().map_err(DirectoryError::file_error("look at", directory))?;
    for node in nodes {
        put_node(&root, node, objects, owner)
            .map_err(DirectoryError::file_error("restore", &node.path))?;
    }
    Ok(())
}

/// Removes everything in a directory, but not the directory itself, on which something may be mounted.
pub(super) fn empty_directory(root: &DirectoryHandle, directory: &Path) -> Result<()> {
    empty_tree(root).map_err(DirectoryError::file_error("empty", directory))
}

fn put_node(
    root: &DirectoryHandle,
    DirectoryNode { path, kind, attributes }: &DirectoryNode,
    objects: &ContentObjects,
    owner: FileOwner,
) -> io::Result<()> {
    let (parent, name) = parent_of(root, path)?;
    let permissions = |mode: u32| Mode::from_bits_truncate(mode & PERMISSIONS);
    match kind {
        NodeKind::Directory { mode } => {
            let made = parent.create_directory(name)?;
            fchmod(&made, Mode::from_bits_truncate(mode & DIRECTORY_PERMISSIONS))?;
            set_attributes(&made, attributes)?;
            owner.take_file(&made)?;
        }
        NodeKind::File { size, blake3, mode, modified_ns } => {
            let digest = Hash::from_hex(blake3).map_err(io::Error::other)?;
            let mut content = File::open(objects.content_path(&digest))?;
            let file = copy_whole(&mut content, parent.create_file(name)?, *size)?;
            fchmod(&file, permissions(*mode))?;
            set_attributes(&file, attributes)?;
            let at = TimeSpec::nanoseconds(*modified_ns);
            futimens(&file, &at, &at)?;
            // The owner comes last: only CAP_FOWNER may change another user's file, and containers lack it.
            owner.take_file(&file)?;
        }
        NodeKind::SameAs { path: first } => {
            let (from, first) = parent_of(root, first)?;
            linkat(&from, first, &parent, name, AtFlags::empty())?;
        }
        NodeKind::Link { target } => {
            symlinkat(target.as_str(), &parent, name)?;
            give_to(&parent, name, owner)?;
        }
        NodeKind::Pipe { mode } => {
            mkfifoat(&parent, name, permissions(*mode))?;
            give_to(&parent, name, owner)?;
        }
    }
    Ok(())
}

/// Returns the open directory that contains the object at a path, and the object's name in that directory.
fn parent_of<'a>(
    root: &DirectoryHandle,
    path: &'a str,
) -> io::Result<(DirectoryHandle, &'a OsStr)> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((root.reach_directory(Path::new(parent))?, OsStr::new(name)))
}

fn give_to(parent: &DirectoryHandle, name: &OsStr, owner: FileOwner) -> io::Result<()> {
    if owner.is_this_process() {
        return Ok(());
    }
    let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
    Ok(fchownat(parent, name, Some(owner.user), Some(owner.group), flags)?)
}
