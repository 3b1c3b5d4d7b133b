//! Putting a task's directory back as it was.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::Path,
};

use blake3::Hash;
use nix::{
    fcntl::AtFlags,
    sys::{
        stat::{Mode, fchmod, futimens},
        time::{TimeSpec, TimeValLike as _},
    },
    unistd::{fchownat, linkat, mkfifoat, symlinkat},
};

use super::{
    Error, Kind, Node, Objects, Result,
    attributes::set_attributes,
    handle::{Handle, Owner},
    snapshot::{DIRECTORY_PERMISSIONS, PERMISSIONS},
};
use crate::sparse::copy_whole;

/// Makes a directory what the nodes say, the contents of its files from `objects`. What else is in it is removed.
/// All of it belongs to whoever owns the directory, which nobody uses.
///
/// # Errors
/// A content is missing, something cannot be written, or there is no room.
pub(crate) fn restore(directory: &Path, nodes: &[Node], objects: &Objects) -> Result<()> {
    let root = Handle::open(directory).map_err(Error::file("open", directory))?;
    empty(&root, directory)?;
    let owner = root.owner().map_err(Error::file("look at", directory))?;
    for node in nodes {
        put(&root, node, objects, owner).map_err(Error::file("restore", &node.path))?;
    }
    Ok(())
}

/// Removes all that is in a directory, and not the directory, on which something may be mounted.
pub(super) fn empty(root: &Handle, directory: &Path) -> Result<()> {
    for name in root.names(usize::MAX).map_err(Error::file("list", directory))? {
        let path = directory.join(&name);
        let stat = root.look(&name).map_err(Error::file("look at", &path))?;
        // The library removes what is below by open directories.
        let removed = match stat.st_mode & libc::S_IFMT {
            libc::S_IFDIR => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        removed.map_err(Error::file("remove", &path))?;
    }
    Ok(())
}

fn put(
    root: &Handle,
    Node { path, kind, attributes }: &Node,
    objects: &Objects,
    owner: Owner,
) -> io::Result<()> {
    let (parent, name) = parent_of(root, path)?;
    let permissions = |mode: u32| Mode::from_bits_truncate(mode & PERMISSIONS);
    match kind {
        Kind::Directory { mode } => {
            let made = parent.create_directory(name)?;
            fchmod(&made, Mode::from_bits_truncate(mode & DIRECTORY_PERMISSIONS))?;
            set_attributes(&made, attributes)?;
            owner.take(&made)?;
        }
        Kind::File { size, blake3, mode, modified_ns } => {
            let digest = Hash::from_hex(blake3).map_err(io::Error::other)?;
            let mut content = File::open(objects.path(&digest))?;
            let file = copy_whole(&mut content, parent.create(name)?, *size)?;
            fchmod(&file, permissions(*mode))?;
            set_attributes(&file, attributes)?;
            let at = TimeSpec::nanoseconds(*modified_ns);
            futimens(&file, &at, &at)?;
            // The owner comes last: only CAP_FOWNER may change another user's file, and containers lack it.
            owner.take(&file)?;
        }
        Kind::SameAs { path: first } => {
            let (from, first) = parent_of(root, first)?;
            linkat(&from, first, &parent, name, AtFlags::empty())?;
        }
        Kind::Link { target } => {
            symlinkat(target.as_str(), &parent, name)?;
            give(&parent, name, owner)?;
        }
        Kind::Pipe { mode } => {
            mkfifoat(&parent, name, permissions(*mode))?;
            give(&parent, name, owner)?;
        }
    }
    Ok(())
}

/// The open directory that a path is in, and the name there.
fn parent_of<'a>(root: &Handle, path: &'a str) -> io::Result<(Handle, &'a OsStr)> {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((root.reach(Path::new(parent))?, OsStr::new(name)))
}

fn give(parent: &Handle, name: &OsStr, owner: Owner) -> io::Result<()> {
    if owner.is_this_process() {
        return Ok(());
    }
    let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
    Ok(fchownat(parent, name, Some(owner.user), Some(owner.group), flags)?)
}
