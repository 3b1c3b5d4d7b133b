//! The worker's mount namespace.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use super::{Error, Result};
use crate::process::threads;

const RUN: &str = "/run";

/// Enters a new mount namespace in which `/run` is an empty tmpfs, and binds the directory
/// `root` to `at`, a path below `/run`.
///
/// Nothing of it is seen outside, and all of it goes with the last process in the namespace.
/// The directory of the resolver's configuration is kept, where it lies in `/run`:
/// the worker still looks up host names.
///
/// To be called once, before any thread is started: threads started before would
/// stay behind in the old namespace.
///
/// # Errors
/// Without root, with threads, or where a mount is refused.
pub fn private_run_tmpfs(root: &Path, at: &Path) -> Result<()> {
    enter_namespace()?;
    // Opened in the new namespace, before the tmpfs hides what lies in /run.
    let root_fd = open(root)?;
    let resolver = fs::canonicalize("/etc/resolv.conf")
        .ok()
        .and_then(|file| file.parent().map(Path::to_owned))
        .filter(|dir| dir.starts_with(RUN) && dir != Path::new(RUN))
        .and_then(|dir| open(&dir).ok().map(|fd| (dir, fd)));
    mount(
        Some("dormouse"),
        RUN,
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some("mode=755"),
    )
    .map_err(failed("mount a tmpfs on", RUN))?;
    bind(&root_fd, at)?;
    if let Some((dir, fd)) = resolver {
        bind(&fd, &dir)?;
    }
    Ok(())
}

/// Enters a new mount namespace, of which nothing is seen outside.
///
/// # Errors
/// Without root, with threads, or where it is refused.
pub(super) fn enter_namespace() -> Result<()> {
    let threads = threads::count().map_err(|source| Error::File {
        action: "read",
        path: threads::LIST.into(),
        source,
    })?;
    if threads != 1 {
        return Err(Error::TooLate { threads });
    }
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(failed("enter a mount namespace of its own for", RUN))?;
    mount(none(), "/", none(), MsFlags::MS_REC | MsFlags::MS_PRIVATE, none())
        .map_err(failed("make the mounts private below", "/"))
}

fn bind(from: &File, at: &Path) -> Result<()> {
    fs::create_dir_all(at).map_err(|source| Error::File {
        action: "create the directory",
        path: at.to_owned(),
        source,
    })?;
    let from = PathBuf::from(format!("/proc/self/fd/{}", from.as_raw_fd()));
    mount(Some(&from), at, none(), MsFlags::MS_BIND, none())
        .map_err(failed("bind a directory to", at))
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|source| Error::File { action: "open", path: path.to_owned(), source })
}

fn none() -> Option<&'static str> {
    None
}

fn failed(action: &'static str, path: impl AsRef<Path>) -> impl Fn(nix::Error) -> Error {
    let path = path.as_ref().to_owned();
    move |e| Error::Mount { action, path: path.clone(), source: io::Error::from(e) }
}
