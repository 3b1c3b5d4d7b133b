//! What memory a VM may have and has, and what memory this process may have.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::atomic::Ordering,
};

use cgroups_rs::fs::memory::MemController;

use super::{Controller, Error, Hierarchy, Result, Vm, file};

impl Vm {
    /// Memory that its tasks may have together, in bytes, where that is limited.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// Memory charged to the VM, in bytes.
    ///
    /// # Errors
    /// Where the counter cannot be read.
    pub fn memory_bytes(&self) -> Result<u64> {
        file::read_u64(&self.group(Controller::Memory).join(if self.hierarchy.is_v2() {
            "memory.current"
        } else {
            "memory.usage_in_bytes"
        }))
    }

    /// How many processes of the VM the kernel has killed for want of memory.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn kills_for_memory(&self) -> Result<u64> {
        let file = if self.hierarchy.is_v2() { "memory.events" } else { "memory.oom_control" };
        file::read_key(&self.group(Controller::Memory).join(file), "oom_kill")
    }

    /// Whether there was such a kill since there were `before` of them, other than those for which
    /// this has been said: of several processes of a job that were killed one is told, and those that
    /// begin after them are not told of the others.
    ///
    /// # Errors
    /// Where the kernel does not say.
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

/// Sets what the group at `path` may have, swapped out or not: a VM that swaps is slow in ways that
/// no VM type has.
pub(super) fn set_limit(path: &Path, v2: bool, bytes: u64) -> Result<()> {
    let limit = i64::try_from(bytes).unwrap_or(i64::MAX);
    let controller = MemController::new(path.to_owned(), path.to_owned(), v2);
    let fail = |setting| {
        move |source| Error::Setting {
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

/// The least limit of memory, in bytes, of the group that this process is in and all above it that
/// can be seen from here; `None` where there is none.
///
/// # Errors
/// Where that cannot be read.
pub fn own_memory_limit(hierarchy: &Hierarchy) -> Result<Option<u64>> {
    limit_of(hierarchy, &file::read(Path::new("/proc/self/cgroup"))?)
}

/// The same of a process whose groups are these (cgroups(7), `/proc/pid/cgroup`).
fn limit_of(hierarchy: &Hierarchy, groups: &str) -> Result<Option<u64>> {
    let Some(mount) = hierarchy.mount(Controller::Memory) else { return Ok(None) };
    let name = if hierarchy.is_v2() { "memory.max" } else { "memory.limit_in_bytes" };
    let group = visible(mount, group_in(groups, hierarchy.is_v2()).unwrap_or_default());
    let mut least = None;
    for group in group.ancestors().take_while(|group| group.starts_with(mount)) {
        let path = group.join(name);
        let content = match file::read(&path) {
            Ok(content) => content,
            // The root of version 2 has no limit.
            Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if content.trim() != "max" {
            let limit = file::read_u64(&path)?;
            least = Some(least.map_or(limit, |least: u64| least.min(limit)));
        }
    }
    Ok(least)
}

/// The path of the memory controller's group, from lines of `number:controllers:path`.
fn group_in(groups: &str, v2: bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match v2 {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_it.then_some(path)
    })
}

/// Where a group is below `mount`. In a container the mount may begin at the container's group, or
/// above, and the path with the host's root: what is not there is left out from its beginning.
fn visible(mount: &Path, path: &str) -> PathBuf {
    let names: Vec<_> = Path::new(path)
        .components()
        .filter(|component| matches!(component, Component::Normal(_)))
        .collect();
    let below =
        (0..names.len()).map(|first| mount.join(names[first..].iter().collect::<PathBuf>()));
    below.into_iter().find(|group| group.is_dir()).unwrap_or_else(|| mount.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cgroup::V1Mounts;
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

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("system.slice/docker-1.scope");
        fs::create_dir_all(&group).unwrap();
        let v2 = Hierarchy::V2(dir.path().to_owned());
        let here = "0::/system.slice/docker-1.scope\n";
        assert_eq!(limit_of(&v2, here).unwrap(), None);
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_of(&v2, here).unwrap(), None);
        fs::write(dir.path().join("system.slice/memory.max"), "2048\n").unwrap();
        assert_eq!(limit_of(&v2, here).unwrap(), Some(2048));
        fs::write(group.join("memory.max"), "4096\n").unwrap();
        assert_eq!(limit_of(&v2, here).unwrap(), Some(2048));
        fs::write(group.join("memory.max"), "1024\n").unwrap();
        assert_eq!(limit_of(&v2, here).unwrap(), Some(1024));
        assert_eq!(limit_of(&v2, "0::/\n").unwrap(), None);
        fs::write(group.join("memory.max"), "much\n").unwrap();
        let error = limit_of(&v2, here).unwrap_err().to_string();
        assert!(error.contains("memory.max holds \"much\""), "{error}");
    }

    #[test]
    fn a_mount_that_begins_at_the_container() {
        let dir = tempfile::tempdir().unwrap();
        let mount = |name: &str| dir.path().join(name);
        let v1 = Hierarchy::V1(V1Mounts {
            cpu: mount("cpu"),
            cpuacct: mount("cpuacct"),
            memory: mount("memory"),
            freezer: mount("freezer"),
            pids: None,
        });
        fs::create_dir_all(mount("memory/inner")).unwrap();
        fs::write(mount("memory/memory.limit_in_bytes"), "8192\n").unwrap();
        fs::write(mount("memory/inner/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        let groups = |path: &str| format!("9:cpu,cpuacct:/other\n4:hugetlb,memory:{path}\n0::/\n");
        for path in ["/docker/1", "/docker/1/inner", "/../2", "/"] {
            assert_eq!(limit_of(&v1, &groups(path)).unwrap(), Some(8192), "{path}");
        }
    }
}
