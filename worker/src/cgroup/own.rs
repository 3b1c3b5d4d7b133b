//! Limits that the control groups of this process set: memory, processor time, weight.
//!
//! A container's engine sets these limits on the container's group, a service manager on groups above it. All limits
//! count that are visible from here.

use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
};

use super::{CgroupController, CgroupError, CgroupHierarchy, Result, file};

/// A control group whose weight is less than the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowWeight {
    /// The file with the group's CPU weight.
    pub path: PathBuf,
    /// The CPU weight that the group has.
    pub weight: u64,
    /// Usual CPU weight of a control group, with which this one is compared.
    pub usual: u64,
}

impl fmt::Display for LowWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, weight, usual } = self;
        write!(f, "{} is {weight}, {usual} is usual", path.display())
    }
}

/// Returns the smallest memory limit, in bytes, of this process's group and all visible groups above; `None`: there is
/// no limit.
///
/// # Errors
///
/// A file of the groups can't be read, or has unexpected content.
pub fn own_memory_limit(hierarchy: &CgroupHierarchy) -> Result<Option<u64>> {
    memory_limit(hierarchy, &own_groups()?)
}

/// Returns the smallest CPU quota, in thousandths of a core, of this process's group and all visible groups above;
/// `None`: there is no quota.
///
/// # Errors
///
/// A file of the groups can't be read, or has unexpected content.
pub fn own_cpu_quota(hierarchy: &CgroupHierarchy) -> Result<Option<u32>> {
    cpu_quota(hierarchy, &own_groups()?)
}

/// Returns the innermost group with less than the usual CPU weight among this process's group and all visible groups above; `None`:
/// there is none. Neighbours of that group get the processor first, whatever its quota is.
///
/// # Errors
///
/// A file of the groups can't be read, or has unexpected content.
pub fn own_low_weight(hierarchy: &CgroupHierarchy) -> Result<Option<LowWeight>> {
    low_weight(hierarchy, &own_groups()?)
}

/// Returns the control groups of this process, as the text of `/proc/self/cgroup` (cgroups(7)).
fn own_groups() -> Result<String> {
    file::read(Path::new("/proc/self/cgroup"))
}

fn memory_limit(hierarchy: &CgroupHierarchy, groups: &str) -> Result<Option<u64>> {
    let name = if hierarchy.is_v2() { "memory.max" } else { "memory.limit_in_bytes" };
    let mut least = None;
    for (path, content) in
        read_contents(hierarchy, (CgroupController::Memory, "memory"), groups, name)?
    {
        if content != "max" {
            let limit = parse_number(&path, &content)?;
            least = Some(least.map_or(limit, |least: u64| least.min(limit)));
        }
    }
    Ok(least)
}

fn cpu_quota(hierarchy: &CgroupHierarchy, groups: &str) -> Result<Option<u32>> {
    let name = if hierarchy.is_v2() { "cpu.max" } else { "cpu.cfs_quota_us" };
    let mut least = None;
    for (path, content) in read_contents(hierarchy, (CgroupController::Cpu, "cpu"), groups, name)? {
        let (quota, period) = match content.split_once(' ') {
            Some((quota, period)) => (quota, parse_number(&path, period)?),
            None => (&*content, file::read_u64(&path.with_file_name("cpu.cfs_period_us"))?),
        };
        if quota == "max" || quota.starts_with('-') {
            continue;
        }
        let millicores = parse_number(&path, quota)?.saturating_mul(1000) / period.max(1);
        // One of less than a thousandth would be none at all.
        let millicores = u32::try_from(millicores).unwrap_or(u32::MAX).max(1);
        least = Some(least.map_or(millicores, |least: u32| least.min(millicores)));
    }
    Ok(least)
}

fn low_weight(hierarchy: &CgroupHierarchy, groups: &str) -> Result<Option<LowWeight>> {
    let (name, usual) = if hierarchy.is_v2() { ("cpu.weight", 100) } else { ("cpu.shares", 1024) };
    for (path, content) in read_contents(hierarchy, (CgroupController::Cpu, "cpu"), groups, name)? {
        // An idle group says 0.
        let weight = parse_number(&path, &content)?;
        if weight < usual {
            return Ok(Some(LowWeight { path, weight, usual }));
        }
    }
    Ok(None)
}

/// Reads the file `name` of a process's group under a controller, and of each visible group above, the innermost first. Groups that
/// lack the file, as the root group may, are left out.
fn read_contents(
    hierarchy: &CgroupHierarchy,
    (controller, word): (CgroupController, &str),
    groups: &str,
    name: &str,
) -> Result<Vec<(PathBuf, String)>> {
    let Some(mount) = hierarchy.mount_point(controller) else { return Ok(Vec::new()) };
    let group = visible_path(mount, group_in(groups, hierarchy.is_v2(), word).unwrap_or_default());
    let mut found = Vec::new();
    for group in group.ancestors().take_while(|group| group.starts_with(mount)) {
        let path = group.join(name);
        match file::read(&path) {
            Ok(content) => found.push((path, content.trim().to_owned())),
            Err(CgroupError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn parse_number(path: &Path, content: &str) -> Result<u64> {
    content.parse().map_err(|_| CgroupError::Unexpected {
        path: path.to_owned(),
        content: content.to_owned(),
        expected: "a number".to_owned(),
    })
}

/// Returns the path of the group that a process has under the controller `word`, from lines of `number:controllers:path`; `None`:
/// it has none.
fn group_in<'a>(groups: &'a str, v2: bool, word: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match v2 {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == word),
        };
        is_it.then_some(path)
    })
}

/// Returns the path of a group below `mount`. In a container the mount may begin at the container's group or above
/// it, while the path begins at the host's root: leading parts that don't exist are dropped.
fn visible_path(mount: &Path, path: &str) -> PathBuf {
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

    /// Returns the control groups of a host of version 2, with those of a container.
    fn v2() -> (tempfile::TempDir, PathBuf, CgroupHierarchy) {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("system.slice/docker-1.scope");
        fs::create_dir_all(&group).unwrap();
        let hierarchy = CgroupHierarchy::V2(dir.path().to_owned());
        (dir, group, hierarchy)
    }

    /// Returns the control groups of a container of version 1; the mounts begin at the container's own groups.
    fn v1() -> (tempfile::TempDir, CgroupHierarchy) {
        let dir = tempfile::tempdir().unwrap();
        let mount = |name: &str| dir.path().join(name);
        for name in ["cpu/inner", "memory/inner"] {
            fs::create_dir_all(mount(name)).unwrap();
        }
        let hierarchy = CgroupHierarchy::V1(V1Mounts {
            cpu: mount("cpu"),
            cpuacct: mount("cpuacct"),
            memory: mount("memory"),
            freezer: mount("freezer"),
            pids: None,
        });
        (dir, hierarchy)
    }

    const HERE: &str = "0::/system.slice/docker-1.scope\n";

    #[test]
    fn the_least_limit_of_memory_on_the_way_up_counts() {
        let (dir, group, v2) = v2();
        assert_eq!(memory_limit(&v2, HERE).unwrap(), None);
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(memory_limit(&v2, HERE).unwrap(), None);
        fs::write(dir.path().join("system.slice/memory.max"), "2048\n").unwrap();
        assert_eq!(memory_limit(&v2, HERE).unwrap(), Some(2048));
        fs::write(group.join("memory.max"), "4096\n").unwrap();
        assert_eq!(memory_limit(&v2, HERE).unwrap(), Some(2048));
        fs::write(group.join("memory.max"), "1024\n").unwrap();
        assert_eq!(memory_limit(&v2, HERE).unwrap(), Some(1024));
        assert_eq!(memory_limit(&v2, "0::/\n").unwrap(), None);
        fs::write(group.join("memory.max"), "much\n").unwrap();
        let error = memory_limit(&v2, HERE).unwrap_err().to_string();
        assert!(error.contains("memory.max holds \"much\""), "{error}");
    }

    #[test]
    fn a_mount_that_begins_at_the_container() {
        let (dir, v1) = v1();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("memory/memory.limit_in_bytes"), "8192\n").unwrap();
        fs::write(at("memory/inner/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        let groups = |path: &str| format!("9:cpu,cpuacct:/other\n4:hugetlb,memory:{path}\n0::/\n");
        for path in ["/docker/1", "/docker/1/inner", "/../2", "/"] {
            assert_eq!(memory_limit(&v1, &groups(path)).unwrap(), Some(8192), "{path}");
        }
    }

    #[test]
    fn a_quota_of_version_1_is_in_thousandths_of_a_core() {
        let (dir, v1) = v1();
        let groups = "9:cpuacct,cpu:/docker/1/inner\n4:memory:/docker/1\n0::/\n";
        let set = |group: &str, quota: &str, period: &str| {
            let group = dir.path().join(group);
            fs::write(group.join("cpu.cfs_quota_us"), quota).unwrap();
            fs::write(group.join("cpu.cfs_period_us"), period).unwrap();
        };
        assert_eq!(cpu_quota(&v1, groups).unwrap(), None);
        set("cpu", "-1\n", "100000\n");
        set("cpu/inner", "-1\n", "100000\n");
        assert_eq!(cpu_quota(&v1, groups).unwrap(), None);
        set("cpu", "60000\n", "100000\n");
        assert_eq!(cpu_quota(&v1, groups).unwrap(), Some(600));
        set("cpu/inner", "150000\n", "100000\n");
        assert_eq!(cpu_quota(&v1, groups).unwrap(), Some(600));
        set("cpu/inner", "1000\n", "3000\n");
        assert_eq!(cpu_quota(&v1, groups).unwrap(), Some(333));
    }

    #[test]
    fn a_quota_of_version_2_and_of_the_groups_above() {
        let (dir, group, v2) = v2();
        assert_eq!(cpu_quota(&v2, HERE).unwrap(), None);
        fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(cpu_quota(&v2, HERE).unwrap(), None);
        fs::write(dir.path().join("system.slice/cpu.max"), "250000 100000\n").unwrap();
        assert_eq!(cpu_quota(&v2, HERE).unwrap(), Some(2500));
        fs::write(group.join("cpu.max"), "66000 100000\n").unwrap();
        assert_eq!(cpu_quota(&v2, HERE).unwrap(), Some(660));
        fs::write(group.join("cpu.max"), "few 100000\n").unwrap();
        let error = cpu_quota(&v2, HERE).unwrap_err().to_string();
        assert!(error.contains("cpu.max holds \"few\""), "{error}");
    }

    #[test]
    fn a_group_of_less_weight_than_usual_is_named() {
        let (_dir, group, v2) = v2();
        let (dir, v1) = v1();
        assert_eq!(low_weight(&v2, HERE).unwrap(), None);
        let path = group.join("cpu.weight");
        fs::write(&path, "100\n").unwrap();
        assert_eq!(low_weight(&v2, HERE).unwrap(), None);
        fs::write(&path, "39\n").unwrap();
        let low = LowWeight { path, weight: 39, usual: 100 };
        assert_eq!(low_weight(&v2, HERE).unwrap(), Some(low));
        let path = dir.path().join("cpu/cpu.shares");
        fs::write(&path, "512\n").unwrap();
        let low = LowWeight { path, weight: 512, usual: 1024 };
        assert_eq!(low_weight(&v1, "9:cpu:/docker/1\n").unwrap(), Some(low));
    }
}
