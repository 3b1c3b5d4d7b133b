//! The worker's mount namespace.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use dormouse_tasks::limits::DIRECTORY_ENTRIES;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
};

use super::{Result, WorkspaceError};
use crate::process::threads;

const RUN: &str = "/run";

/// Enters a new mount namespace in which `/run` is an empty tmpfs, and binds the directory `root` to `at`, a path
/// below `/run`.
///
/// The mounts aren't visible outside, and disappear with the last process of the namespace. The directory of the
/// resolver's configuration is kept if it is in `/run`, as the worker still looks up host names.
///
/// Call this once, before any thread is started: earlier threads would stay in the old namespace.
///
/// # Errors
///
/// The process isn't root or has threads, or a mount is refused.
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
    .map_err(mount_failed("mount a tmpfs on", RUN))?;
    bind_directory(&root_fd, at)?;
    if let Some((dir, fd)) = resolver {
        bind_directory(&fd, &dir)?;
    }
    Ok(())
}

/// Mounts a tmpfs of `bytes` bytes for the directories of tasks, as nothing would keep a task from filling a disk. Later mounts
/// below it are visible in mount namespaces that are copied from this one, too.
pub(super) fn tmpfs_for_tasks(at: &Path, bytes: u64) -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = format!("mode=711,size={bytes},nr_inodes={DIRECTORY_ENTRIES}");
    mount(Some("dormouse-tasks"), at, Some("tmpfs"), flags, Some(options.as_str()))
        .map_err(mount_failed("mount a tmpfs on", at))?;
    mount(no_text(), at, no_text(), MsFlags::MS_SHARED, no_text())
        .map_err(mount_failed("share the mounts in", at))
}

/// Mounts a tmpfs of `bytes` bytes, owned by `user` and `group`, over the directory of one task, which limits what the directory
/// may hold. Programs in it can be run.
pub(super) fn tmpfs_for_task(at: &Path, bytes: u64, (user, group): (u32, u32)) -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options =
        format!("mode=700,uid={user},gid={group},size={bytes},nr_inodes={DIRECTORY_ENTRIES}");
    mount(Some("dormouse-task"), at, Some("tmpfs"), flags, Some(options.as_str()))
        .map_err(mount_failed("mount a tmpfs on", at))
}

/// Changes the size of the tmpfs over the directory of one task, which is not smaller than what is in it.
pub(super) fn resize_tmpfs(at: &Path, bytes: u64) -> Result<()> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("size={bytes}");
    mount(no_text(), at, no_text(), flags, Some(options.as_str()))
        .map_err(mount_failed("change the size of the tmpfs on", at))
}

/// Unmounts the file system over a directory, if there is one. Processes that still use that file system keep it.
pub(super) fn take_away(at: &Path) -> Result<()> {
    use nix::errno::Errno;
    loop {
        match umount2(at, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) => {}
            // It is no mount, or not there.
            Err(Errno::EINVAL | Errno::ENOENT) => return Ok(()),
            // Whoever may not unmount has mounted nothing.
            Err(Errno::EPERM) => return Ok(()),
            Err(error) => return Err(mount_failed("unmount", at)(error)),
        }
    }
}

/// Enters a new mount namespace whose mounts aren't visible outside.
///
/// # Errors
///
/// The process isn't root or has threads, or the kernel refuses.
pub(super) fn enter_namespace() -> Result<()> {
    let threads = threads::count_threads().map_err(|source| WorkspaceError::File {
        action: "read",
        path: threads::LIST.into(),
        source,
    })?;
    if threads != 1 {
        return Err(WorkspaceError::TooLate { threads });
    }
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(mount_failed("enter a mount namespace of its own for", RUN))?;
    mount(no_text(), "/", no_text(), MsFlags::MS_REC | MsFlags::MS_PRIVATE, no_text())
        .map_err(mount_failed("make the mounts private below", "/"))
}

fn bind_directory(from: &File, at: &Path) -> Result<()> {
    fs::create_dir_all(at).map_err(|source| WorkspaceError::File {
        action: "create the directory",
        path: at.to_owned(),
        source,
    })?;
    let from = PathBuf::from(format!("/proc/self/fd/{}", from.as_raw_fd()));
    mount(Some(&from), at, no_text(), MsFlags::MS_BIND, no_text())
        .map_err(mount_failed("bind a directory to", at))
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|source| WorkspaceError::File {
        action: "open",
        path: path.to_owned(),
        source,
    })
}

fn no_text() -> Option<&'static str> {
    None
}

fn mount_failed(
    action: &'static str,
    path: impl AsRef<Path>,
) -> impl Fn(nix::Error) -> WorkspaceError {
    let path = path.as_ref().to_owned();
    move |e| WorkspaceError::Mount { action, path: path.clone(), source: io::Error::from(e) }
}
