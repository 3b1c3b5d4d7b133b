//! What runs leave behind on a host.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{Pid, getsid};

use crate::wait_for;

/// Prefix of the names of the folders of runs' workers.
const RUN: &str = "dormouse-run-";

/// What is on the host because of runs: tasks, control groups, folders in memory. What belongs to runs of others, or
/// to other programs, is left out.
#[must_use]
pub fn traces() -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if line.split('\0').next().is_some_and(|p| p.contains("dormouse-task")) {
            // Its group is that of its worker.
            let groups = fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
            if !groups.split(['/', '\n']).any(is_of_others) {
                found.push(format!("process {}: {line}", process.file_name().display()));
            }
        }
    }
    let groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer"];
    let groups = groups.map(|place| (place, "dormouse-"));
    for (place, prefix) in groups.into_iter().chain([("/dev/shm", RUN)]) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) && !is_of_others(&name) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

/// Whether the process that made the thing of this name is alive and of another session than this test:
/// `scripts/run-tests` begins a session for each program, and each terminal is one.
fn is_of_others(name: &str) -> bool {
    let Some(owner) = owner(name) else { return false };
    let line = fs::read_to_string(format!("/proc/{owner}/cmdline")).unwrap_or_default();
    // Another process has the number where this one was of another namespace.
    line.contains("dormouse") && getsid(Some(owner)).is_ok_and(|of| getsid(None) != Ok(of))
}

/// The process that made the thing of this name: the coordinator for `dormouse-run-PID-NUMBER`, and, if it is of this
/// PID namespace, the worker for `dormouse-NAMESPACE-PID-START`.
fn owner(name: &str) -> Option<Pid> {
    let pid = if let Some(rest) = name.strip_prefix(RUN) {
        rest.split('-').next()?
    } else {
        let mut numbers = name.strip_prefix("dormouse-")?.split('-');
        let here = fs::read_link("/proc/self/ns/pid").ok()?;
        if here.to_string_lossy() != format!("pid:[{}]", numbers.next()?) {
            return None;
        }
        numbers.next()?
    };
    pid.parse().ok().map(Pid::from_raw)
}

/// Waits until only things are left that were there `before`.
///
/// # Panics
///
/// Something else is left after 20 s.
pub fn nothing_is_left_but(before: &[String]) {
    wait_for("everything is gone", Duration::from_secs(20), || {
        let left: Vec<_> = traces().into_iter().filter(|t| !before.contains(t)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:#?}")) }
    });
}

/// Name of the environment variable whose value identifies the processes of one run.
pub const MARK: &str = "DORMOUSE_TEST_MARK";

/// What is left on this host without an owner: processes with this [`MARK`], folders of workers that these
/// coordinators made, and control groups and mounts of any dead worker. What belongs to live runs of others is left
/// out.
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
            if coordinators.iter().any(|pid| name.starts_with(&format!("{RUN}{pid}-"))) {
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
        let of_one = |pid: &u32| point.contains(&format!("/{RUN}{pid}-"));
        point.split('/').any(is_dead) || coordinators.iter().any(of_one)
    };
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    found.extend(points.filter(|point| of_them(point)).map(|point| format!("mount {point}")));
    found
}

/// The worker processes that a process has started.
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

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that waits for the end of its input; by its command line, others take it for one of dormouse's.
    fn waits(program: &str, first: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(first).args(["-c", "read dormouse"]).stdin(Stdio::piped());
        command.spawn().expect("a process")
    }

    fn ends(mut process: Child) {
        process.kill().expect("it is there");
        process.wait().expect("it ends");
    }

    #[test]
    fn a_run_of_another_session_leaves_no_trace_of_this_one() {
        let (own, other) = (waits("sh", &[]), waits("setsid", &["sh"]));
        wait_for("a session of its own", Duration::from_secs(20), || {
            let session = getsid(Some(Pid::from_raw(other.id().cast_signed())));
            if session == getsid(None) { Err(format!("{session:?}")) } else { Ok(()) }
        });
        let [own_folder, other_folder, simulated] = [
            format!("/dev/shm/{RUN}{}-7", own.id()),
            format!("/dev/shm/{RUN}{}-7", other.id()),
            format!("/dev/shm/dormouse-simulator-{}", own.id()),
        ];
        let folders = [&own_folder, &other_folder, &simulated];
        folders.iter().for_each(|folder| fs::create_dir(folder).expect("a folder in memory"));
        let seen = traces();
        // A run that begins removes what nobody holds.
        folders.iter().for_each(|folder| _ = fs::remove_dir(folder));
        assert!(seen.contains(&own_folder), "{seen:#?}");
        assert!(!seen.contains(&other_folder) && !seen.contains(&simulated), "{seen:#?}");
        // What the dead have left may be of anybody.
        ends(own);
        assert!(!is_of_others(own_folder.trim_start_matches("/dev/shm/")));
        ends(other);
        assert!(!is_of_others(other_folder.trim_start_matches("/dev/shm/")));
    }

    #[test]
    fn who_made_a_group_is_known_by_its_name_within_a_namespace() {
        let here = fs::read_link("/proc/self/ns/pid").expect("a namespace");
        let here = here.to_string_lossy().replace("pid:[", "").replace(']', "");
        assert_eq!(owner(&format!("dormouse-{here}-17-991")), Some(Pid::from_raw(17)));
        assert_eq!(owner("dormouse-1-17-991"), None);
        assert_eq!(owner("dormouse-run-17-0"), Some(Pid::from_raw(17)));
        assert_eq!(owner("dormouse-simulator-x"), None);
        assert_eq!(owner("user.slice"), None);
    }
}
