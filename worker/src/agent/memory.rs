//! The amount of memory that this process may use.

use std::fs;

use crate::cgroup::{self, CgroupHierarchy, own_memory_limit};

/// Returns the memory available to tasks, in bytes: what the kernel calls available (proc(5)), or zero if the kernel
/// doesn't report it, limited by the control group of this process, as in a container.
///
/// # Errors
///
/// The control group's limit can't be read.
pub(crate) fn available_bytes(hierarchy: &CgroupHierarchy) -> cgroup::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok();
    let available = text.and_then(|text| available_in(&text)).unwrap_or(0);
    Ok(available.min(own_memory_limit(hierarchy)?.unwrap_or(u64::MAX)))
}

/// Memory that this process may still use, in bytes, as limited by its control group, if any; `None` if the kernel does
/// not report it.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let available = available_in(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let limit =
        CgroupHierarchy::detect_version().and_then(|hierarchy| own_memory_limit(&hierarchy));
    Some(available.min(limit.ok().flatten().unwrap_or(u64::MAX)))
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_offered_than_the_workers_own_group_may_have() {
        let mount = tempfile::tempdir().unwrap();
        let hierarchy = CgroupHierarchy::V2(mount.path().to_owned());
        assert!(available_bytes(&hierarchy).unwrap() > 4096);
        fs::write(mount.path().join("memory.max"), "4096\n").unwrap();
        assert_eq!(available_bytes(&hierarchy).unwrap(), 4096);
        fs::write(mount.path().join("memory.max"), "\n").unwrap();
        available_bytes(&hierarchy).unwrap_err();
    }

    #[test]
    fn meminfo_is_in_kib() {
        let text = "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_in(text), Some(2 << 20));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }
}
