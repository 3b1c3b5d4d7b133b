//! One worker's tree of groups.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    CgroupController, CgroupError, CgroupHierarchy, InstanceName, Result, VmGroups,
    claim::TreeClaim, cpu, delegate, freezer, sweep,
};
use crate::jail::TaskJail;

/// All controllers under which a worker's tree has control groups.
pub(crate) const ALL: [CgroupController; 5] = [
    CgroupController::Cpu,
    CgroupController::Cpuacct,
    CgroupController::Memory,
    CgroupController::Freezer,
    CgroupController::Pids,
];

/// Control groups of one worker. Dropping this value leaves the groups in place: `remove` removes them; if a worker dies first, its
/// guardian process or the next worker's sweep removes them.
#[derive(Debug)]
pub struct GroupTree {
    hierarchy: CgroupHierarchy,
    name: InstanceName,
    period_us: u64,
    jail: Option<Arc<TaskJail>>,
    _claim: TreeClaim,
}

impl GroupTree {
    /// Creates the tree called `name`, whose vCPUs get quotas with a period of `period_us`
    /// microseconds ([`CpuQuota::DEFAULT_PERIOD_US`](super::CpuQuota::DEFAULT_PERIOD_US)).
    ///
    /// # Errors
    /// Where groups cannot be created (no root, read-only `/sys/fs/cgroup`) or, under version
    /// 2, controllers cannot be delegated.
    pub fn create_tree(
        hierarchy: CgroupHierarchy,
        name: InstanceName,
        period_us: u64,
    ) -> Result<Self> {
        let relative = PathBuf::from(name.to_string());
        if let CgroupHierarchy::V2(root) = &hierarchy {
            delegate::prepare_subtree(root, hierarchy.delegated_controllers())?;
        }
        let claim = TreeClaim::claim_tree(&first_group(&hierarchy, name), || {
            create_groups(&hierarchy, &ALL[..1], &relative)
        })?;
        create_groups(&hierarchy, &ALL[1..], &relative)?;
        if let CgroupHierarchy::V2(root) = &hierarchy {
            delegate::enable_controllers(&root.join(&relative), hierarchy.delegated_controllers())?;
        }
        cpu::favour_group(
            &hierarchy.group_path(CgroupController::Cpu, &relative),
            hierarchy.is_v2(),
        )?;
        Ok(Self { hierarchy, name, period_us, jail: None, _claim: claim })
    }

    /// Returns the jail that confines the tasks of the worker's VMs; `None`: the tasks aren't jailed.
    #[must_use]
    pub const fn jail(&self) -> Option<&Arc<TaskJail>> {
        self.jail.as_ref()
    }

    /// Sets the jail that confines the tasks of the worker's VMs.
    #[must_use]
    pub fn with_jail(self, jail: Option<Arc<TaskJail>>) -> Self {
        Self { jail, ..self }
    }

    /// Returns the host's hierarchy of control groups, in which the tree is.
    #[must_use]
    pub fn hierarchy(&self) -> &CgroupHierarchy {
        &self.hierarchy
    }

    /// Returns the tree's name.
    #[must_use]
    pub fn name(&self) -> InstanceName {
        self.name
    }

    /// Creates the groups of VM `id` with `vcpus` processors without quota and, if
    /// given, a memory limit in bytes. Slot `a` of each vCPU is in the foreground.
    ///
    /// # Errors
    /// Where a group or a namespace cannot be created or a limit is refused.
    pub fn create_vm(&self, id: u64, vcpus: u32, memory_limit: Option<u64>) -> Result<VmGroups> {
        let relative = PathBuf::from(self.name.to_string()).join(format!("vm{id}"));
        let cell = self
            .jail
            .as_ref()
            .map(|jail| jail.make_cell(&format!("vm{id}")))
            .transpose()
            .map_err(CgroupError::Jail)?;
        VmGroups::create_groups(
            self.hierarchy.clone(),
            relative,
            vcpus,
            memory_limit,
            self.period_us,
            cell,
        )
    }

    /// Returns the CPU time of everything that ever ran in the tree, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The counter can't be read.
    pub fn cpu_ns(&self) -> Result<u64> {
        let relative = PathBuf::from(self.name.to_string());
        let group = self.hierarchy.group_path(CgroupController::Cpuacct, &relative);
        cpu::usage_ns(&group, self.hierarchy.is_v2())
    }

    /// Freezes or thaws the whole tree; a VM that was frozen separately stays frozen.
    ///
    /// # Errors
    ///
    /// The tree isn't frozen or thawed by the deadline.
    pub fn freeze_all(&self, frozen: bool, deadline: Duration) -> Result<()> {
        let relative = PathBuf::from(self.name.to_string());
        let group = self.hierarchy.group_path(CgroupController::Freezer, &relative);
        freezer::set_frozen(&group, self.hierarchy.is_v2(), frozen, deadline).map(drop)
    }

    /// Kills what is left in the tree and removes it.
    ///
    /// # Errors
    ///
    /// Processes or groups survive the deadline.
    pub fn remove(&self, deadline: Duration) -> Result<()> {
        sweep::destroy_instance(&self.hierarchy, self.name, deadline).map(drop)
    }
}

/// Returns the path of a tree's first group: it is created first, and the tree's owner holds a claim on it.
pub(crate) fn first_group(hierarchy: &CgroupHierarchy, name: InstanceName) -> PathBuf {
    hierarchy.group_path(ALL[0], Path::new(&name.to_string()))
}

/// Creates the group `relative` in the hierarchies of `controllers`.
pub(crate) fn create_groups(
    hierarchy: &CgroupHierarchy,
    controllers: &[CgroupController],
    relative: &Path,
) -> Result<()> {
    for path in hierarchy.group_paths(controllers, relative) {
        fs::create_dir_all(&path).map_err(|source| CgroupError::Create { path, source })?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cgroup");
        let hierarchy = CgroupHierarchy::V2(root.clone());
        create_groups(&hierarchy, &ALL, Path::new("a/vm1")).unwrap();
        assert!(root.join("a/vm1").is_dir());
        fs::write(root.join("file"), "").unwrap();
        let error = create_groups(&hierarchy, &ALL, Path::new("file/vm1")).unwrap_err();
        assert!(
            matches!(&error, CgroupError::Create { path, .. } if *path == root.join("file/vm1"))
        );
    }
}
