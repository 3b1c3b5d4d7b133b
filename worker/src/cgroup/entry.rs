//! Files that a new process needs to enter its control groups.

use std::{
    fs::OpenOptions,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::PathBuf,
    sync::Arc,
};

use super::{CgroupError, CgroupHierarchy, Result};
use crate::{jail::JailCell, process::ProcessGroups};

/// Opens the files by which a new process enters the control groups `groups`.
pub(super) fn open(
    hierarchy: &CgroupHierarchy,
    groups: &[PathBuf],
    cell: Option<Arc<JailCell>>,
) -> Result<ProcessGroups> {
    let mut entry = ProcessGroups { files: Vec::new(), born_in: None, cell };
    for group in groups {
        let open = |path: PathBuf, options: &mut OpenOptions| {
            options
                .open(&path)
                .map(OwnedFd::from)
                .map_err(|source| CgroupError::Read { path, source })
        };
        if hierarchy.is_v2() {
            let directory =
                OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).to_owned();
            entry.born_in = Some(open(group.clone(), &mut directory.clone())?);
            // For those who fork by other means than clone3.
            entry.files.push(open(group.join("cgroup.procs"), OpenOptions::new().write(true))?);
        } else {
            entry.files.push(open(group.join("tasks"), OpenOptions::new().write(true))?);
        }
    }
    Ok(entry)
}
