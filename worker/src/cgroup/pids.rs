//! How many processes and threads the tasks of a VM may have.

use std::path::Path;

use super::{Result, file};
use crate::jail::{PIDS, PIDS_PER_VCPU};

/// File of the `pids` controller (version 1 or 2) with the largest number of processes that a group may have.
const MAX: &str = "pids.max";

/// Bounds the number of processes of a VM with `vcpus` vCPUs. If the kernel doesn't count processes the limit's file doesn't exist;
/// see [`CgroupHierarchy::counts_pids`](super::CgroupHierarchy::counts_pids).
pub(super) fn bound_processes(group: &Path, vcpus: u32) -> Result<()> {
    let path = group.join(MAX);
    if !path.exists() {
        return Ok(());
    }
    file::write(&path, &(PIDS + u64::from(vcpus) * PIDS_PER_VCPU).to_string())
}
