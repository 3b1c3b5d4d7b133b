//! An open directory, in which names are looked up without following a link.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Component, Path},
};

use nix::{
    dir::Dir,
    fcntl::{AtFlags, OFlag, open, openat, readlinkat},
    sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat},
    unistd::{Gid, Uid, fchown},
};

const DIRECTORY: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);
const PRIVATE: Mode = Mode::S_IRWXU;

/// An open directory, which stays the same directory even if paths are renamed.
#[derive(Debug)]
pub(crate) struct DirectoryHandle(OwnedFd);

impl AsFd for DirectoryHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DirectoryHandle {
    /// Opens the directory at a path whose last part must not be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, DIRECTORY, Mode::empty())?))
    }

    /// Opens the directory called `name` in this directory.
    pub(crate) fn enter_directory(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, DIRECTORY, Mode::empty())?))
    }

    /// Opens the directory at `path`, which is relative to this directory and of which no part may be a link.
    pub(crate) fn reach_directory(&self, path: &Path) -> io::Result<Self> {
        let mut reached = Self(openat(&self.0, ".", DIRECTORY, Mode::empty())?);
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it leads out of the directory",
                ));
            };
            reached = reached.enter_directory(name)?;
        }
        Ok(reached)
    }

    /// Returns the names in the directory, sorted; at most `most` + 1 of them.
    pub(crate) fn list_names(&self, most: usize) -> io::Result<Vec<OsString>> {
        let fresh = openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in &mut Dir::from_fd(fresh)?.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
            if names.len() > most {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the status of the file with this name, which may be a link.
    pub(crate) fn stat_name(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file to read. A link is refused, and so is a pipe, at which an open may wait for ever.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    /// Creates a file that doesn't exist yet.
    pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        Ok(openat(&self.0, name, flags | OFlag::O_CLOEXEC, mode)?.into())
    }

    /// Creates a directory that doesn't exist yet.
    pub(crate) fn create_directory(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&self.0, name, PRIVATE)?;
        self.enter_directory(name)
    }

    /// Returns the path that the symbolic link called `name` leads to.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        Ok(readlinkat(&self.0, name)?)
    }

    /// Returns the directory's owner.
    pub(crate) fn read_owner(&self) -> io::Result<FileOwner> {
        let stat = fstat(&self.0)?;
        Ok(FileOwner { user: Uid::from_raw(stat.st_uid), group: Gid::from_raw(stat.st_gid) })
    }
}

/// A user and a group that own files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileOwner {
    pub(crate) user: Uid,
    pub(crate) group: Gid,
}

impl FileOwner {
    /// Returns the user and the group of this process.
    pub(crate) fn this_process() -> Self {
        Self { user: Uid::effective(), group: Gid::effective() }
    }

    /// Changes the owner of an open file or directory to this user and group.
    pub(crate) fn take_file(self, file: impl AsFd) -> io::Result<()> {
        if self.is_this_process() {
            return Ok(());
        }
        Ok(fchown(file, Some(self.user), Some(self.group))?)
    }

    /// Returns whether this owner is the user and the group of this process, which own the files that it makes.
    pub(crate) fn is_this_process(self) -> bool {
        self.user == Uid::effective() && self.group == Gid::effective()
    }
}
