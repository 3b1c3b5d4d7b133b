//! What runs leave on a host.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::unistd::Pid;

use crate::wait_for;

/// What this project leaves on a host while it runs: tasks, control groups, folders in memory.
#[must_use]
pub fn traces() -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if line.split('\0').next().is_some_and(|p| p.contains("dormouse-task")) {
            found.push(format!("process {}: {line}", process.file_name().display()));
        }
    }
    for place in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer", "/dev/shm"] {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("dormouse-") {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

/// Waits until nothing is left but what was there `before`.
///
/// # Panics
///
/// Something is, after 20 s.
pub fn nothing_is_left_but(before: &[String]) {
    wait_for("everything is gone", Duration::from_secs(20), || {
        let left: Vec<_> = traces().into_iter().filter(|t| !before.contains(t)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:#?}")) }
    });
}

/// The variable of the environment by whose value the processes of one run are known.
pub const MARK: &str = "DORMOUSE_TEST_MARK";

/// What is left on this host that nobody looks after: processes with this [`MARK`], folders of
/// workers that these coordinators made, and control groups and mounts of any dead worker. What
/// others have under way is none of it.
#[must_use]
pub fn orphans(mark: &Path, coordinators: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    let marked = format!("{MARK}={}", mark.display());
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        if environ.split(|&b| b == 0).any(|word| word == marked.as_bytes()) {
            let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
            found.push(format!("process {}: {line}", process.file_name().display()));
        }
    }
    for place in [Path::new("/dev/shm"), &std::env::temp_dir()] {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if coordinators.iter().any(|pid| name.starts_with(&format!("dormouse-run-{pid}-"))) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    // A worker's is dormouse-NAMESPACE-PID-START.
    let is_dead = |name: &str| {
        let numbers: Option<Vec<u64>> = name
            .strip_prefix("dormouse-")
            .and_then(|rest| rest.split('-').map(|n| n.parse().ok()).collect());
        numbers.is_some_and(|n| n.len() == 3 && !Path::new(&format!("/proc/{}", n[1])).exists())
    };
    for place in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer"] {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if is_dead(&entry.file_name().to_string_lossy()) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let of_them = |point: &str| {
        let of_one = |pid: &u32| point.contains(&format!("/dormouse-run-{pid}-"));
        point.split('/').any(is_dead) || coordinators.iter().any(of_one)
    };
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    found.extend(points.filter(|point| of_them(point)).map(|point| format!("mount {point}")));
    found
}

/// The workers that a process has started.
#[must_use]
pub fn workers_of(pid: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let children =
        tasks.flatten().filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    let is_worker = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split('\0').any(|word| word == "worker"))
    };
    let all: Vec<i32> =
        children.flat_map(|c| c.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect();
    all.into_iter().filter(is_worker).map(Pid::from_raw).collect()
}
