//! The control groups that the host has and where they are mounted.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::{CgroupError, Result, file};

/// A controller, by its version 1 name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupController {
    /// The controller of CPU quotas and weights.
    Cpu,
    /// The controller that counts CPU time; part of `cpu` in version 2.
    Cpuacct,
    /// The controller of memory limits.
    Memory,
    /// The controller that freezes groups; built in in version 2.
    Freezer,
    /// The controller of the number of processes; absent on some hosts.
    Pids,
}

/// Mount points of version 1's controllers; co-mounted ones share a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Mounts {
    /// Mount point of the `cpu` controller.
    pub cpu: PathBuf,
    /// Mount point of the `cpuacct` controller.
    pub cpuacct: PathBuf,
    /// Mount point of the `memory` controller.
    pub memory: PathBuf,
    /// Mount point of the `freezer` controller.
    pub freezer: PathBuf,
    /// Mount point of the `pids` controller; `None`: the host has none.
    pub pids: Option<PathBuf>,
}

/// Control groups of a host: version 1 or version 2, with their mount points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupHierarchy {
    /// Version 1, each controller mounted by itself (or some together).
    V1(V1Mounts),
    /// Version 2, with the mount point of the unified tree.
    V2(PathBuf),
}

impl CgroupHierarchy {
    /// Detects the control groups of this host from `/proc/self/mountinfo`.
    ///
    /// # Errors
    ///
    /// Neither version offers cpu, memory and freezing.
    pub fn detect_version() -> Result<Self> {
        Self::from_mountinfo(&file::read(Path::new("/proc/self/mountinfo"))?)
    }

    /// Detects the control groups from the text of a `mountinfo` (proc(5)).
    ///
    /// A controller belongs to one version at a time; on hybrid hosts, where both are mounted, the version with cpu,
    /// memory and freezer is taken.
    ///
    /// # Errors
    ///
    /// Neither version offers cpu, memory and freezing.
    pub fn from_mountinfo(mountinfo: &str) -> Result<Self> {
        let mut v1: Vec<(String, PathBuf)> = Vec::new();
        let mut v2 = None;
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else {
                continue;
            };
            let mut right = right.split(' ');
            let (kind, options) = (right.next(), right.nth(1).unwrap_or_default());
            let Some(point) = left.split(' ').nth(4).map(PathBuf::from) else {
                continue;
            };
            match kind {
                Some("cgroup") => {
                    v1.extend(options.split(',').map(|o| (o.to_owned(), point.clone())));
                }
                Some("cgroup2") => v2 = Some(point),
                _ => {}
            }
        }
        let find = |name: &str| v1.iter().find(|(n, _)| n == name).map(|(_, p)| p.clone());
        if let (Some(cpu), Some(cpuacct), Some(memory), Some(freezer)) =
            (find("cpu"), find("cpuacct"), find("memory"), find("freezer"))
        {
            let pids = find("pids");
            return Ok(Self::V1(V1Mounts { cpu, cpuacct, memory, freezer, pids }));
        }
        let Some(root) = v2 else {
            return Err(CgroupError::Missing {
                what: "no control groups with cpu, memory and freezer are mounted".to_owned(),
                remedy: "mount cgroup2 at /sys/fs/cgroup (container engines do so themselves)",
            });
        };
        let offered = file::read(&root.join("cgroup.controllers"))?;
        for needed in ["cpu", "memory"] {
            if !offered.split_whitespace().any(|c| c == needed) {
                return Err(CgroupError::Missing {
                    what: format!(
                        "the control groups at {} offer no {needed} controller (only: {})",
                        root.display(),
                        offered.trim()
                    ),
                    remedy: "delegate it to this tree, or boot with it enabled",
                });
            }
        }
        Ok(Self::V2(root))
    }

    /// Returns the controllers of version 2 that a worker's groups use; `pids` only if the host has it.
    pub(crate) fn delegated_controllers(&self) -> &'static [&'static str] {
        if self.counts_pids() { &["cpu", "memory", "pids"] } else { &["cpu", "memory"] }
    }

    /// Returns whether the number of processes can be bounded.
    #[must_use]
    pub fn counts_pids(&self) -> bool {
        match self {
            Self::V1(mounts) => mounts.pids.is_some(),
            Self::V2(root) => file::read(&root.join("cgroup.controllers"))
                .is_ok_and(|offered| offered.split_whitespace().any(|name| name == "pids")),
        }
    }

    /// Returns whether the host's control groups are version 2.
    #[must_use]
    pub fn is_v2(&self) -> bool {
        matches!(self, Self::V2(_))
    }

    /// Returns the mount point of `controller`; `None` only if the host has no `pids` controller.
    #[must_use]
    pub fn mount_point(&self, controller: CgroupController) -> Option<&Path> {
        match self {
            Self::V2(root) => Some(root),
            Self::V1(mounts) => match controller {
                CgroupController::Cpu => Some(&mounts.cpu),
                CgroupController::Cpuacct => Some(&mounts.cpuacct),
                CgroupController::Memory => Some(&mounts.memory),
                CgroupController::Freezer => Some(&mounts.freezer),
                CgroupController::Pids => mounts.pids.as_deref(),
            },
        }
    }

    /// Returns the mount point of every controller that a worker uses, each path once.
    pub(crate) fn mount_points(&self) -> Vec<PathBuf> {
        let mut points: Vec<PathBuf> = Vec::new();
        for point in super::tree::ALL.iter().filter_map(|controller| self.mount_point(*controller))
        {
            if !points.iter().any(|known| known == point) {
                points.push(point.to_owned());
            }
        }
        points
    }

    /// Returns the path of the group `relative` under each of `controllers`, each path once.
    pub(crate) fn group_paths(
        &self,
        controllers: &[CgroupController],
        relative: &Path,
    ) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for mount in controllers.iter().filter_map(|c| self.mount_point(*c)) {
            let path = mount.join(relative);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Returns the path of the group `relative` under a controller that every host has.
    pub(crate) fn group_path(&self, controller: CgroupController, relative: &Path) -> PathBuf {
        match (self, controller) {
            (Self::V2(root), _) => root.join(relative),
            (Self::V1(m), CgroupController::Cpu) => m.cpu.join(relative),
            (Self::V1(m), CgroupController::Cpuacct) => m.cpuacct.join(relative),
            (Self::V1(m), CgroupController::Memory) => m.memory.join(relative),
            // Where there is no pids controller, the freezer lists the same processes.
            (Self::V1(m), CgroupController::Freezer | CgroupController::Pids) => {
                m.freezer.join(relative)
            }
        }
    }
}

impl fmt::Display for CgroupHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1(mounts) => write!(f, "version 1 (cpu at {})", mounts.cpu.display()),
            Self::V2(root) => write!(f, "version 2 at {}", root.display()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const APART: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn controllers_mounted_apart() {
        let CgroupHierarchy::V1(mounts) = CgroupHierarchy::from_mountinfo(APART).unwrap() else {
            panic!("not version 1");
        };
        assert_eq!(mounts.cpuacct, Path::new("/sys/fs/cgroup/cpuacct"));
        assert_eq!(mounts.pids.unwrap(), Path::new("/sys/fs/cgroup/pids"));
    }

    #[test]
    fn controllers_mounted_together_give_each_path_once() {
        let text = "\
1 0 0:1 / /cg/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
2 0 0:2 / /cg/memory rw - cgroup cgroup rw,memory
3 0 0:3 / /cg/freezer rw - cgroup cgroup rw,freezer
";
        let hierarchy = CgroupHierarchy::from_mountinfo(text).unwrap();
        let groups = hierarchy.group_paths(
            &[CgroupController::Cpu, CgroupController::Cpuacct, CgroupController::Pids],
            Path::new("x"),
        );
        assert_eq!(groups, [Path::new("/cg/cpu,cpuacct/x")]);
    }

    #[test]
    fn unified_needs_cpu_and_memory() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("1 0 0:1 / {} rw - cgroup2 cgroup2 rw", dir.path().display());
        std::fs::write(dir.path().join("cgroup.controllers"), "hugetlb\n").unwrap();
        let error = CgroupHierarchy::from_mountinfo(&text).unwrap_err().to_string();
        assert!(error.contains("no cpu controller (only: hugetlb)"), "{error}");
        std::fs::write(dir.path().join("cgroup.controllers"), "cpuset cpu memory pids\n").unwrap();
        assert!(CgroupHierarchy::from_mountinfo(&text).unwrap().is_v2());
        assert!(CgroupHierarchy::from_mountinfo("").is_err());
    }
}
