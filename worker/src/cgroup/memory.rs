//! Memory limit and memory use of a VM.

use std::{path::Path, sync::atomic::Ordering};

use cgroups_rs::memory::MemController;

use super::{CgroupController, CgroupError, Result, VmGroups, file};

impl VmGroups {
    /// Returns the memory limit of all tasks of the VM together, in bytes; `None`: there is no limit.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// Returns the memory charged to the VM, in bytes.
    ///
    /// # Errors
    /// Where the counter cannot be read.
    pub fn memory_bytes(&self) -> Result<u64> {
        file::read_u64(&self.group_path(CgroupController::Memory).join(if self.hierarchy.is_v2() {
            "memory.current"
        } else {
            "memory.usage_in_bytes"
        }))
    }

    /// Returns how many processes of the VM the kernel has killed for lack of memory.
    ///
    /// # Errors
    ///
    /// The kernel doesn't report it.
    pub fn kills_for_memory(&self) -> Result<u64> {
        let file = if self.hierarchy.is_v2() { "memory.events" } else { "memory.oom_control" };
        file::read_key(&self.group_path(CgroupController::Memory).join(file), "oom_kill")
    }

    /// Returns whether the kernel killed a process of the group for lack of memory, beyond the first `before` kills and
    /// those that this function already reported. If several processes of a job are killed, only one kill is reported,
    /// and tasks that begin later don't learn of the others.
    ///
    /// # Errors
    ///
    /// The kernel doesn't report it.
    pub fn has_lost_one_for_memory(&self, before: u64) -> Result<bool> {
        let kills = self.kills_for_memory()?;
        let one_more = |said: u64| {
            let said = said.max(before);
            (said < kills).then_some(said + 1)
        };
        let said = self.oom_kills_said.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        Ok(said.is_ok())
    }
}

/// Sets the memory limit of the group at `path`, which includes swap: a VM that swaps is slow in ways that no VM type
/// has.
pub(super) fn set_limit(path: &Path, v2: bool, bytes: u64) -> Result<()> {
    let limit = i64::try_from(bytes).unwrap_or(i64::MAX);
    let controller = MemController::new(path.to_owned(), v2);
    let fail = |setting| {
        move |source| CgroupError::Setting {
            path: path.to_owned(),
            setting,
            value: format!("{bytes} bytes"),
            source: Box::new(source),
        }
    };
    controller.set_limit(limit).map_err(fail("the memory limit"))?;
    // Version 1 limits memory and swap together. Without the file the kernel swaps for no group.
    let (swap, beside) =
        if v2 { ("memory.swap.max", 0) } else { ("memory.memsw.limit_in_bytes", limit) };
    if path.join(swap).exists() {
        controller.set_memswap_limit(beside).map_err(fail("the swap limit to go with"))?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn swap_is_limited_where_it_can_be() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let text = |name: &str| fs::read_to_string(at(name)).unwrap();
        set_limit(dir.path(), false, 4096).unwrap();
        assert_eq!(text("memory.limit_in_bytes"), "4096");
        assert!(!at("memory.memsw.limit_in_bytes").exists());
        fs::write(at("memory.memsw.limit_in_bytes"), "9223372036854771712\n").unwrap();
        set_limit(dir.path(), false, 4096).unwrap();
        assert_eq!(text("memory.memsw.limit_in_bytes"), "4096");
        fs::write(at("memory.swap.max"), "max\n").unwrap();
        set_limit(dir.path(), true, 4096).unwrap();
        assert_eq!([text("memory.max"), text("memory.swap.max")], ["4096", "0"]);
    }
}
