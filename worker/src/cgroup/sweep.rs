//! Removing the control groups and processes that a dead worker left.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    CgroupController, CgroupHierarchy, InstanceName, Result, claim::TreeClaim, file, procs, tree,
};
use crate::process;

/// What a sweep removed: control groups of dead workers, and the processes in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweptGroups {
    /// Names of the removed trees of control groups.
    pub trees: Vec<String>,
    /// The number of processes that were killed in the trees.
    pub processes: usize,
}

/// Kills all processes in the trees of dead workers and removes the trees.
///
/// # Errors
/// Where the trees cannot be listed, or something of this PID namespace survives the deadline.
/// Processes of another namespace may be out of reach: such a tree is left, with a warning.
pub fn sweep_stale(hierarchy: &CgroupHierarchy, deadline: Duration) -> Result<SweptGroups> {
    let here = process::pid_namespace().ok();
    let mut swept = SweptGroups::default();
    for name in list_instances(hierarchy)? {
        let Some(_claim) = TreeClaim::of_abandoned(&tree::first_group(hierarchy, name))? else {
            continue;
        };
        match destroy_instance(hierarchy, name, deadline) {
            Ok(processes) => {
                swept.processes += processes;
                swept.trees.push(name.to_string());
            }
            Err(error) if Some(name.pid_namespace) != here => {
                tracing::warn!(%name, %error, "control groups of a dead worker elsewhere can't be removed");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(swept)
}

/// Kills all processes of one tree and removes the tree, whoever owns it. Returns the number of processes that were in
/// the tree.
///
/// # Errors
/// Where something survives the deadline.
pub fn destroy_instance(
    hierarchy: &CgroupHierarchy,
    name: InstanceName,
    deadline: Duration,
) -> Result<usize> {
    let relative = PathBuf::from(name.to_string());
    let freezer = hierarchy.group_path(CgroupController::Freezer, &relative);
    let mut killed = 0;
    // Every hierarchy is asked: a worker may have died while attaching a process.
    for group in hierarchy.group_paths(&tree::ALL, &relative) {
        killed += procs::kill_all(&group, &freezer, hierarchy.is_v2(), deadline)?;
    }
    for group in hierarchy.group_paths(&tree::ALL, &relative) {
        procs::remove(&group, deadline)?;
    }
    Ok(killed)
}

fn list_instances(hierarchy: &CgroupHierarchy) -> Result<Vec<InstanceName>> {
    let mut names = Vec::new();
    for mount in hierarchy.group_paths(&tree::ALL, Path::new("")) {
        for directory in file::subdirectories(&mount)? {
            let name = directory.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if let Ok(name) = name.parse()
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::process::ProcessIdentity;
    use std::fs;

    #[test]
    fn only_trees_that_nobody_owns_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let here = process::pid_namespace().unwrap();
        let owner = ProcessIdentity::current_process().unwrap();
        let names = [here, here + 1, here + 2, here + 3]
            .map(|pid_namespace| InstanceName { pid_namespace, owner });
        let at = |name: InstanceName| dir.path().join(name.to_string());
        for name in names {
            fs::create_dir_all(at(name).join("vm1/cpu0/a")).unwrap();
        }
        fs::create_dir(dir.path().join("dormouse-init")).unwrap();
        let hierarchy = CgroupHierarchy::V2(dir.path().to_owned());
        let claims = [0, 1].map(|i| TreeClaim::claim_tree(&at(names[i]), || Ok(())).unwrap());
        let swept = sweep_stale(&hierarchy, Duration::from_secs(1)).unwrap();
        assert_eq!(swept.trees, [names[2].to_string(), names[3].to_string()]);
        assert_eq!(names.map(|name| at(name).exists()), [true, true, false, false]);
        // What becomes of a tree whose worker ends.
        drop(claims);
        let swept = sweep_stale(&hierarchy, Duration::from_secs(1)).unwrap();
        assert_eq!(swept.trees, [names[0].to_string(), names[1].to_string()]);
        assert!(dir.path().join("dormouse-init").exists());
    }

    #[test]
    fn a_tree_swept_while_it_was_being_made_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("dormouse-1-2-3");
        fs::create_dir(&group).unwrap();
        let sweeper = TreeClaim::of_abandoned(&group).unwrap().unwrap();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| {
                let create = || match fs::create_dir_all(&group) {
                    Ok(()) => Ok(()),
                    Err(e) => panic!("{e}"),
                };
                TreeClaim::claim_tree(&group, create).unwrap()
            });
            // The maker has the abandoned group or makes its own: either way it ends with one.
            fs::remove_dir(&group).unwrap();
            drop(sweeper);
            let claim = maker.join().unwrap();
            assert!(group.exists());
            assert!(TreeClaim::of_abandoned(&group).unwrap().is_none());
            drop(claim);
        });
    }
}
