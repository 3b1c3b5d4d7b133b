//! Everything in a task's directory, one after the other.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    vec,
};

use nix::sys::stat::FileStat;

use dormouse_tasks::limits::{DIRECTORY_ENTRIES, PATH_BYTES};

use super::{DirectoryError, Result, handle::DirectoryHandle};

/// Greatest depth of nested directories.
const DEEPEST: usize = 64;
/// Most bytes of all paths of a directory's objects together.
const PATHS: usize = 4 << 20;

/// An object in a directory, before it is opened.
#[derive(Debug)]
pub(crate) struct FoundNode<'a> {
    /// The directory that the object is in.
    pub(crate) parent: &'a DirectoryHandle,
    pub(crate) name: &'a OsStr,
    /// The object's path relative to the directory where the walk began.
    pub(crate) path: &'a str,
    pub(crate) stat: FileStat,
}

impl FoundNode<'_> {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == libc::S_IFREG
    }

    /// Returns the object's type, one of the constants `libc::S_IF*`.
    pub(crate) fn kind(&self) -> u32 {
        self.stat.st_mode & libc::S_IFMT
    }

    /// Returns the object's length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

/// A directory that is being walked, with the names that are still to be visited.
struct WalkLevel {
    handle: DirectoryHandle,
    path: String,
    names: vec::IntoIter<OsString>,
}

/// Calls `see` with every object in a directory, each directory before its contents, in the order of names.
///
/// # Errors
///
/// There are too many objects, or a name isn't text; the system refuses; or an error of `see`.
pub(crate) fn walk(directory: &Path, see: impl FnMut(&FoundNode<'_>) -> Result<()>) -> Result<()> {
    walk_past(directory, see, |_, error| Err(error))
}

/// Walks as [`walk`] does, but past objects that `see` must not get or that can't be entered: for such an object `unfit` is called
/// with the path and the reason, and an error of `unfit` ends the walk.
///
/// # Errors
///
/// There are too many objects; the system refuses; or an error of `see` or `unfit`.
pub(crate) fn walk_past(
    directory: &Path,
    mut see: impl FnMut(&FoundNode<'_>) -> Result<()>,
    mut unfit: impl FnMut(&FoundNode<'_>, DirectoryError) -> Result<()>,
) -> Result<()> {
    let handle =
        DirectoryHandle::open(directory).map_err(DirectoryError::file_error("open", directory))?;
    let names = handle
        .list_names(DIRECTORY_ENTRIES)
        .map_err(DirectoryError::file_error("list", directory))?;
    let (mut count, mut length) = (names.len(), 0);
    let mut levels = vec![WalkLevel { handle, path: String::new(), names: names.into_iter() }];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { return Ok(()) };
        if count > DIRECTORY_ENTRIES {
            let what =
                format!("more than {DIRECTORY_ENTRIES} files and directories; pack or remove some");
            return Err(DirectoryError::Beyond { what });
        }
        let Some(name) = level.names.next() else {
            levels.pop();
            continue;
        };
        let path = join_path(&level.path, &name.to_string_lossy());
        length += path.len();
        if length > PATHS {
            let what = format!("paths of more than {PATHS} bytes together; shorten them");
            return Err(DirectoryError::Beyond { what });
        }
        let stat =
            level.handle.stat_name(&name).map_err(DirectoryError::file_error("look at", &path))?;
        let found = FoundNode { parent: &level.handle, name: &name, path: &path, stat };
        let error = match is_fit(&name, &path) {
            Err(error) => error,
            Ok(()) => {
                see(&found)?;
                if !found.is_directory() {
                    continue;
                }
                match enter_level(level, &name, &path, depth) {
                    Err(error) => error,
                    Ok((handle, names)) => {
                        count = count.saturating_add(names.len());
                        levels.push(WalkLevel { handle, path, names: names.into_iter() });
                        continue;
                    }
                }
            }
        };
        unfit(&found, error)?;
    }
}

/// Opens a directory to walk it; `depth` is the number of directories around it.
fn enter_level(
    level: &WalkLevel,
    name: &OsStr,
    path: &str,
    depth: usize,
) -> Result<(DirectoryHandle, Vec<OsString>)> {
    if depth >= DEEPEST {
        let what = format!("directories in directories, more than {DEEPEST} deep");
        return Err(DirectoryError::Beyond { what });
    }
    let handle =
        level.handle.enter_directory(name).map_err(DirectoryError::file_error("open", path))?;
    let names =
        handle.list_names(DIRECTORY_ENTRIES).map_err(DirectoryError::file_error("list", path))?;
    Ok((handle, names))
}

/// Checks that an object of this name and path can be named in a checkpoint or a report.
fn is_fit(name: &OsStr, path: &str) -> Result<()> {
    if name.to_str().is_none() {
        return Err(DirectoryError::refused_path(path, "has a name that is not UTF-8; rename it"));
    }
    if path.len() > PATH_BYTES {
        let what = format!("a path of more than {PATH_BYTES} bytes; shorten it");
        return Err(DirectoryError::Beyond { what });
    }
    Ok(())
}

fn join_path(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}
