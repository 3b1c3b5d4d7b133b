//! How many processes and threads the tasks of a VM may have.

use std::path::Path;

use super::{Result, file};
use crate::jail::{PIDS, PIDS_PER_VCPU};

/// File with the largest number of processes, in the group that counts processes, of either version.
const MAX: &str = "pids.max";

/// Bounds the processes of a VM with this number of vCPUs. If the kernel doesn't count processes there is no such
/// file; see [`CgroupHierarchy::counts_pids`](super::CgroupHierarchy::counts_pids).
pub(super) fn bound_processes(group: &Path, vcpus: u32) -> Result<()> {
    let path = group.join(MAX);
    if !path.exists() {
        return Ok(());
    }
    file::write(&path, &(PIDS + u64::from(vcpus) * PIDS_PER_VCPU).to_string())
}
