//! Files of the kernel that a container's engine mounts read-only and that a worker writes.

use std::{
    io,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sys::statvfs::{FsFlags, statvfs},
};

use super::{Result, WorkspaceError, mounts};
use crate::{cgroup::CgroupHierarchy, place::ProcessPlace};

/// Directory that must be writable for CRIU, which writes `kernel/ns_last_pid` in it.
const SETTINGS: &str = "/proc/sys";

/// Makes the control groups and `/proc/sys` writable for this process. Docker, Podman and Kubernetes mount them read-only in their
/// containers. If one is read-only, the process first enters a mount namespace of its own. No process outside of that namespace
/// sees a change, and the control groups are still those of the container, with its limits.
///
/// Call this before any thread is started, and before the guardian is started, which removes groups.
///
/// # Errors
///
/// There are threads already, or a mount is refused: the error says what to add and where.
pub fn make_kernel_files_writable(hierarchy: &CgroupHierarchy) -> Result<()> {
    let read_only: Vec<_> =
        mounts_of(hierarchy).into_iter().filter(|at| is_read_only(at)).collect();
    if read_only.is_empty() {
        return Ok(());
    }
    let refused = |path: &Path, source: io::Error| WorkspaceError::ReadOnly {
        path: path.to_owned(),
        remedy: ProcessPlace::detect_place().to_mount(),
        source,
    };
    mounts::enter_namespace().map_err(|error| match error {
        WorkspaceError::Mount { source, .. } => refused(&read_only[0], source),
        other => other,
    })?;
    for path in &read_only {
        remount_writable(path).map_err(|source| refused(path, source))?;
    }
    Ok(())
}

fn mounts_of(hierarchy: &CgroupHierarchy) -> Vec<PathBuf> {
    let mut all = hierarchy.mount_points();
    all.push(SETTINGS.into());
    all
}

/// Returns whether the file system or its mount is read-only; false if that can't be found out, since a write will then
/// show it.
fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_RDONLY))
}

fn remount_writable(path: &Path) -> io::Result<()> {
    // A remount drops the flags that it does not name.
    let kept = kept_flags(statvfs(path)?.flags());
    let nothing = None::<&str>;
    let again = |flags| mount(nothing, path, nothing, flags | kept, nothing);
    again(MsFlags::MS_REMOUNT | MsFlags::MS_BIND)?;
    if is_read_only(path) {
        // The mount is writable now: the file system is not.
        again(MsFlags::MS_REMOUNT)?;
    }
    if is_read_only(path) { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
}

/// Returns the flags of a mount that stay when it is mounted again.
fn kept_flags(flags: FsFlags) -> MsFlags {
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    pairs
        .into_iter()
        .filter(|(has, _)| flags.contains(*has))
        .fold(MsFlags::empty(), |all, (_, flag)| all | flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remount_keeps_all_but_read_only() {
        let flags = FsFlags::ST_RDONLY | FsFlags::ST_NOSUID | FsFlags::ST_NOEXEC;
        assert_eq!(kept_flags(flags), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC);
        assert_eq!(kept_flags(FsFlags::ST_RDONLY), MsFlags::empty());
    }

    #[test]
    fn every_mount_is_looked_at_once() {
        let v2 = CgroupHierarchy::V2("/sys/fs/cgroup".into());
        let expected = ["/sys/fs/cgroup", SETTINGS].map(PathBuf::from);
        assert_eq!(mounts_of(&v2), expected);
        assert!(!is_read_only(&std::env::temp_dir()));
    }
}
