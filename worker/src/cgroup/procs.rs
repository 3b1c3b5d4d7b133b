//! The processes of a group: listing, killing; and removing the empty group.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{CgroupError, Result, file, freezer};

/// Returns the PIDs of the processes in `group` and in all groups below it.
pub(crate) fn list_processes(group: &Path) -> Result<BTreeSet<i32>> {
    let mut pids = BTreeSet::new();
    for group in with_descendants(group)? {
        let path = group.join("cgroup.procs");
        let content = match file::read(&path) {
            Ok(content) => content,
            // The group went away, or was never there.
            Err(CgroupError::Read { source, .. })
                if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) =>
            {
                continue;
            }
            Err(e) => return Err(e),
        };
        for line in content.split_whitespace() {
            // 0 is a process of another PID namespace, out of reach.
            if let Some(pid) = line.parse().ok().filter(|pid| *pid > 0) {
                pids.insert(pid);
            }
        }
    }
    Ok(pids)
}

/// Returns the ids of the threads in `group` itself, without the groups below it.
pub(crate) fn list_threads(group: &Path, v2: bool) -> Result<Vec<i32>> {
    let content = file::read(&group.join(if v2 { "cgroup.threads" } else { "tasks" }))?;
    // 0 is a thread of another PID namespace, out of reach.
    Ok(content.lines().filter_map(|line| line.parse().ok()).filter(|id| *id > 0).collect())
}

/// Kills every process in `group` and below and waits until none is left.
///
/// `freezer` is the path of `group` in the freezer hierarchy: frozen tasks are thawed so that they can die. Returns how many
/// processes were found.
pub(crate) fn kill_all(
    group: &Path,
    freezer: &Path,
    v2: bool,
    deadline: Duration,
) -> Result<usize> {
    let mut seen = BTreeSet::new();
    file::wait_until(
        deadline,
        || {
            let pids = list_processes(group)?;
            if pids.is_empty() {
                return Ok(Ok(()));
            }
            if v2 && group.join("cgroup.kill").exists() {
                file::write(&group.join("cgroup.kill"), "1")?;
            } else {
                for pid in &pids {
                    // The only failure possible for root is that it is gone.
                    let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
                }
                thaw_all(freezer, v2);
            }
            seen.extend(pids.iter().copied());
            Ok(Err(pids))
        },
        |left, after| CgroupError::Late {
            path: group.to_owned(),
            wanted: "empty",
            last: {
                let left = left.iter().map(ToString::to_string).collect::<Vec<_>>();
                format!("processes {} are still there", left.join(", "))
            },
            after,
        },
    )?;
    Ok(seen.len())
}

/// Restricts all threads of `group` to the host cores `cores`.
pub(crate) fn bind_threads(group: &Path, v2: bool, cores: &CpuSet) -> Result<()> {
    let path = group.join(if v2 { "cgroup.threads" } else { "tasks" });
    let content = file::read(&path)?;
    // 0 is a thread of another PID namespace, out of reach, and here would be the caller.
    for thread in content.lines().filter_map(|line| line.parse().ok()).filter(|id| *id > 0) {
        match sched_setaffinity(Pid::from_raw(thread), cores) {
            // It has ended.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(source) => {
                return Err(CgroupError::Bind { path, thread, source: source.into() });
            }
        }
    }
    Ok(())
}

/// Thaws a group and all below it, as far as they exist.
fn thaw_all(group: &Path, v2: bool) {
    for group in with_descendants(group).unwrap_or_default() {
        let _ = freezer::request_state(&group, v2, false);
    }
}

/// Removes the (empty) group and all below it, deepest first.
///
/// A group whose last process has just died stays busy for a moment: its removal is tried again until the deadline. A
/// group that does not exist counts as removed.
pub(crate) fn remove(group: &Path, deadline: Duration) -> Result<()> {
    let started = Instant::now();
    for group in with_descendants(group)?.iter().rev() {
        let left = deadline.saturating_sub(started.elapsed());
        file::wait_until(
            left,
            || {
                Ok(match fs::remove_dir(group) {
                    Ok(()) => Ok(()),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                    Err(e) => Err(e),
                })
            },
            |source, after| CgroupError::Remove { path: group.clone(), after, source },
        )?;
    }
    Ok(())
}

/// Returns `group` and all groups below it, parents before children.
fn with_descendants(group: &Path) -> Result<Vec<PathBuf>> {
    let mut all = vec![group.to_owned()];
    let mut next = 0;
    while let Some(group) = all.get(next) {
        let below = file::subdirectories(group)?;
        all.extend(below);
        next += 1;
    }
    Ok(all)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn processes_are_listed_over_the_subtree() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("cpu0/a")).unwrap();
        fs::write(dir.path().join("cgroup.procs"), "").unwrap();
        fs::write(dir.path().join("cpu0/cgroup.procs"), "0\n12\n").unwrap();
        fs::write(dir.path().join("cpu0/a/cgroup.procs"), "7\n12\n").unwrap();
        assert_eq!(list_processes(dir.path()).unwrap(), BTreeSet::from([7, 12]));
        assert!(list_processes(&dir.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn threads_that_are_gone_or_out_of_reach_are_not_bound() {
        let dir = tempfile::tempdir().unwrap();
        let cores = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
        // No thread has the greatest number there is.
        fs::write(dir.path().join("tasks"), "0\n2147483647\n").unwrap();
        bind_threads(dir.path(), false, &CpuSet::new()).unwrap();
        fs::write(dir.path().join("cgroup.threads"), format!("{}\n", nix::unistd::gettid()))
            .unwrap();
        bind_threads(dir.path(), true, &cores).unwrap();
        let error = bind_threads(dir.path(), true, &CpuSet::new()).unwrap_err().to_string();
        assert!(error.starts_with("can't bind thread"), "{error}");
    }

    #[test]
    fn removal_is_depth_first_and_says_what_is_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("vm1");
        fs::create_dir_all(group.join("cpu0/a")).unwrap();
        fs::create_dir_all(group.join("cpu0/b")).unwrap();
        fs::write(group.join("cpu0/b/in-the-way"), "").unwrap();
        let error = remove(&group, Duration::from_millis(2)).unwrap_err().to_string();
        assert!(error.contains("vm1/cpu0/b"), "{error}");
        fs::remove_file(group.join("cpu0/b/in-the-way")).unwrap();
        remove(&group, Duration::from_millis(2)).unwrap();
        assert!(!group.exists());
        remove(&group, Duration::ZERO).unwrap();
    }
}
