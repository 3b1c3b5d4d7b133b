//! Everything in a task's directory, one after the other.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    vec,
};

use nix::sys::stat::FileStat;

use super::{Error, Result, handle::Handle};

/// Most files and directories that a task may have, as many as fit into the memory of all of a worker's tasks.
const MAX_ENTRIES: usize = 65_536;
/// How deep they may lie.
const DEEPEST: usize = 64;
/// The longest that their paths may be, one and all together, in bytes.
const PATH: usize = 1024;
const PATHS: usize = 4 << 20;

/// One thing in a directory, before it is opened.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The directory that it is in.
    pub(crate) parent: &'a Handle,
    pub(crate) name: &'a OsStr,
    /// The path relative to where the walk began.
    pub(crate) path: &'a str,
    pub(crate) stat: FileStat,
}

impl Found<'_> {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == libc::S_IFREG
    }

    /// The type, of the constants `libc::S_IF*`.
    pub(crate) fn kind(&self) -> u32 {
        self.stat.st_mode & libc::S_IFMT
    }

    /// The length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

/// A directory that is being walked through, its path and what of it is still to come.
struct Level {
    handle: Handle,
    path: String,
    names: vec::IntoIter<OsString>,
}

/// Shows everything in a directory to `see`, each directory before what is in it, in the order of names.
///
/// # Errors
/// There is too much of it, or a name is no text; the system refuses; or what `see` says.
pub(crate) fn walk(directory: &Path, mut see: impl FnMut(&Found<'_>) -> Result<()>) -> Result<()> {
    let handle = Handle::open(directory).map_err(Error::file("open", directory))?;
    let names = handle.names(MAX_ENTRIES).map_err(Error::file("list", directory))?;
    let (mut count, mut length) = (names.len(), 0);
    let mut levels = vec![Level { handle, path: String::new(), names: names.into_iter() }];
    while let Some(level) = levels.last_mut() {
        if count > MAX_ENTRIES {
            let what =
                format!("more than {MAX_ENTRIES} files and directories; pack or remove some");
            return Err(Error::Beyond { what });
        }
        let Some(name) = level.names.next() else {
            levels.pop();
            continue;
        };
        let path = below(&level.path, &name)?;
        length += path.len();
        if path.len() > PATH || length > PATHS {
            let what = format!(
                "paths of more than {PATH} bytes, or of more than {PATHS} together; shorten them"
            );
            return Err(Error::Beyond { what });
        }
        let stat = level.handle.look(&name).map_err(Error::file("look at", &path))?;
        let found = Found { parent: &level.handle, name: &name, path: &path, stat };
        see(&found)?;
        if found.is_directory() {
            let handle = level.handle.enter(&name).map_err(Error::file("open", &path))?;
            let names = handle.names(MAX_ENTRIES).map_err(Error::file("list", &path))?;
            count = count.saturating_add(names.len());
            levels.push(Level { handle, path, names: names.into_iter() });
        }
        if levels.len() > DEEPEST {
            let what = format!("directories in directories, more than {DEEPEST} deep");
            return Err(Error::Beyond { what });
        }
    }
    Ok(())
}

fn below(parent: &str, name: &OsStr) -> Result<String> {
    let Some(text) = name.to_str() else {
        let path = name.to_string_lossy();
        return Err(Error::refused(&path, "has a name that is not UTF-8; give it another"));
    };
    Ok(if parent.is_empty() { text.to_owned() } else { format!("{parent}/{text}") })
}
