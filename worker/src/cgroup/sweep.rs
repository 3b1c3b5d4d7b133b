//! Taking away what a dead worker left.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Controller, Hierarchy, InstanceName, Result, file, procs, tree};
use crate::process;

/// What a sweep found and took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// The trees removed.
    pub trees: Vec<String>,
    /// How many processes were killed in them.
    pub processes: usize,
}

/// Kills all processes in the trees of dead workers and removes the trees.
///
/// Only trees of workers of this PID namespace are judged: of the others nobody here can
/// know whether they live.
///
/// # Errors
/// Where the trees cannot be listed, or something survives the deadline.
pub fn sweep_stale(hierarchy: &Hierarchy, deadline: Duration) -> Result<Swept> {
    let here = process::pid_namespace().ok();
    let mut swept = Swept::default();
    for name in instances(hierarchy)? {
        if Some(name.pid_namespace) == here && !name.owner.is_alive() {
            swept.processes += destroy_instance(hierarchy, name, deadline)?;
            swept.trees.push(name.to_string());
        }
    }
    Ok(swept)
}

/// Kills all processes of one tree and removes it, whoever owns it. Returns how many
/// processes there were.
///
/// # Errors
/// Where something survives the deadline.
pub fn destroy_instance(
    hierarchy: &Hierarchy,
    name: InstanceName,
    deadline: Duration,
) -> Result<usize> {
    let relative = PathBuf::from(name.to_string());
    let freezer = hierarchy.group(Controller::Freezer, &relative);
    let mut killed = 0;
    // Every hierarchy is asked: a worker may have died while attaching a process.
    for group in hierarchy.groups(&tree::ALL, &relative) {
        killed += procs::kill_all(&group, &freezer, hierarchy.is_v2(), deadline)?;
    }
    for group in hierarchy.groups(&tree::ALL, &relative) {
        procs::remove(&group, deadline)?;
    }
    Ok(killed)
}

fn instances(hierarchy: &Hierarchy) -> Result<Vec<InstanceName>> {
    let mut names = Vec::new();
    for mount in hierarchy.groups(&tree::ALL, Path::new("")) {
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
    use crate::process::Identity;
    use std::fs;

    #[test]
    fn only_dead_owners_of_this_namespace_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let here = process::pid_namespace().unwrap();
        let alive = Identity::current().unwrap();
        // The same PID with another start time: the PID was used again.
        let dead = Identity { start_ticks: alive.start_ticks + 1, ..alive };
        let names = [
            InstanceName { pid_namespace: here, owner: alive },
            InstanceName { pid_namespace: here, owner: dead },
            InstanceName { pid_namespace: here + 1, owner: dead },
        ];
        for name in names {
            fs::create_dir_all(dir.path().join(name.to_string()).join("vm1/cpu0/a")).unwrap();
        }
        fs::create_dir(dir.path().join("dormouse-init")).unwrap();
        let hierarchy = Hierarchy::V2(dir.path().to_owned());
        let swept = sweep_stale(&hierarchy, Duration::from_secs(1)).unwrap();
        assert_eq!(swept.trees, [names[1].to_string()]);
        assert!(dir.path().join(names[0].to_string()).exists());
        assert!(!dir.path().join(names[1].to_string()).exists());
        assert!(dir.path().join(names[2].to_string()).exists());
    }
}
