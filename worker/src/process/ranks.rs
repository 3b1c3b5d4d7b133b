//! The processes that are the ranks of a parallel job.

use std::{fs, path::PathBuf};

use super::{ProcessError, Result};

/// Returns the PIDs, in this process's PID namespace, of those children of `parent` whose PIDs in their own namespace
/// are `inside`; in the order of `inside`. A rank that has ended is left out.
///
/// A restore changes the PIDs in this process's namespace, but not those in the job's own namespace. So a parallel job reports its
/// ranks by the PIDs in its own namespace (`dormouse_tasks::progress`).
///
/// # Errors
///
/// `parent` has ended, or the kernel doesn't list children.
pub fn rank_pids(parent: i32, inside: &[i32]) -> Result<Vec<i32>> {
    of_thread(parent, parent, inside)
}

/// Returns the child of the calling thread that is the first process of a PID namespace; any of them if there are
/// several.
///
/// # Errors
///
/// The kernel doesn't list children.
pub(crate) fn init_among_children() -> Result<Option<i32>> {
    let (process, thread) = (nix::unistd::getpid(), nix::unistd::gettid());
    Ok(of_thread(process.as_raw(), thread.as_raw(), &[1])?.first().copied())
}

fn of_thread(parent: i32, thread: i32, inside: &[i32]) -> Result<Vec<i32>> {
    let path = PathBuf::from(format!("/proc/{parent}/task/{thread}/children"));
    let children = fs::read_to_string(&path)
        .map_err(|source| ProcessError::Proc { path: path.clone(), source })?;
    let children: Vec<(i32, i32)> = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        // One that is gone by now has no name any more.
        .filter_map(|pid| Some((name_inside(&fs::read_to_string(read_status(pid)).ok()?)?, pid)))
        .collect();
    let child = |name: &i32| children.iter().find(|(inside, _)| inside == name);
    Ok(inside.iter().filter_map(child).map(|(_, pid)| *pid).collect())
}

fn read_status(pid: i32) -> String {
    format!("/proc/{pid}/status")
}

/// Returns the last PID in `NSpid` (proc(5)), which is the PID in the process's own namespace.
fn name_inside(status: &str) -> Option<i32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_last_pid_is_the_one_inside() {
        let status =
            "Name:\tdormouse-task\nPid:\t912\nPPid:\t911\nNSpid:\t912\t7\nNSsid:\t911\t1\n";
        assert_eq!(name_inside(status), Some(7));
        assert_eq!(name_inside("Name:\tx\n"), None);
    }

    #[test]
    fn children_are_found_in_the_order_asked_for() {
        let mut command = std::process::Command::new("cat");
        command.stdin(std::process::Stdio::piped());
        let mut children = [command.spawn().unwrap(), command.spawn().unwrap()];
        // Children are listed with the thread that made them, which for a test is not the first.
        let thread = nix::unistd::gettid().as_raw();
        let here = children.each_ref().map(|child| i32::try_from(child.id()).unwrap());
        let found = of_thread(std::process::id() as i32, thread, &[here[1], 1, here[0]]);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found.unwrap(), [here[1], here[0]]);
        assert!(rank_pids(i32::MAX, &[1]).is_err());
    }
}
