//! Paths in images, which CRIU opens as root.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
};

use crate::jail::CELL;

/// Checks that paths lead to something below the tasks' root, through no link.
#[derive(Debug)]
pub(super) struct ImageNames {
    /// The tasks' root.
    root: File,
}

impl ImageNames {
    pub(super) fn below_root(root: File) -> Self {
        Self { root }
    }

    /// Checks a path as CRIU has it; the tasks' root is at [`CELL`]. A path with links is refused: the kernel's path of a process's
    /// file never has links in it.
    ///
    /// # Errors
    ///
    /// Why the path is refused, worded to follow the path.
    pub(super) fn look_at(&self, path: &[u8]) -> Result<(), String> {
        let path = Path::new(OsStr::from_bytes(path));
        let Ok(below) = path.strip_prefix(CELL) else {
            return Err("is outside the tasks' root".to_owned());
        };
        if below.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err("leads up".to_owned());
        }
        if below.as_os_str().is_empty() {
            return Ok(());
        }
        // One that is not there any more may be made there: what leads to it counts.
        for part in below.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            match self.find_path(part) {
                Ok(()) => return Ok(()),
                Err(Errno::ENOENT) => {}
                Err(Errno::ELOOP) => return Err("leads through a link".to_owned()),
                Err(error) => {
                    return Err(format!("can't be inspected: {}", io::Error::from(error)));
                }
            }
        }
        Ok(())
    }

    /// Checks the name of a UNIX socket, which is relative to `directory` if it isn't absolute.
    ///
    /// # Errors
    ///
    /// Why the name is refused, worded to follow the name.
    pub(super) fn look_at_socket(
        &self,
        name: &[u8],
        directory: Option<&str>,
    ) -> Result<(), String> {
        // An abstract name is one of the VM's network; a path may end with a zero.
        let name = match name {
            [] | [0, ..] => return Ok(()),
            [path @ .., 0] => path,
            path => path,
        };
        let directory = Path::new(directory.unwrap_or("/"));
        let path: PathBuf = directory.join(OsStr::from_bytes(name));
        self.look_at(path.as_os_str().as_bytes())
    }

    fn find_path(&self, path: &Path) -> Result<(), Errno> {
        let resolve = ResolveFlag::RESOLVE_BENEATH
            | ResolveFlag::RESOLVE_NO_SYMLINKS
            | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(resolve);
        openat2(&self.root, path, how).map(drop)
    }
}
