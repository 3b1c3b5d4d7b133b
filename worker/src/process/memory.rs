//! The amount of memory that processes have.

use std::{fs, io, path::PathBuf};

use nix::unistd::{SysconfVar, sysconf};

use super::{ProcessError, Result};

/// Returns the resident memory of a process and all its descendants, in bytes. Memory that several of these processes share counts
/// once for each.
///
/// # Errors
///
/// There is no such process.
pub fn resident_bytes(pid: i32) -> Result<u64> {
    let path = PathBuf::from(format!("/proc/{pid}/statm"));
    let fail = |source| ProcessError::Proc { path: path.clone(), source };
    let statm = fs::read_to_string(&path).map_err(fail)?;
    let strange =
        || fail(io::Error::new(io::ErrorKind::InvalidData, "it has no number of resident pages"));
    let pages = resident_pages(&statm).ok_or_else(strange)?;
    let page = sysconf(SysconfVar::PAGE_SIZE).map_err(|e| fail(e.into()))?;
    let own = pages * page.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096);
    // Of one that ends meanwhile there is nothing.
    let others = child_pids(pid).into_iter().filter_map(|child| resident_bytes(child).ok());
    Ok(own + others.sum::<u64>())
}

/// Returns the second number of `/proc/PID/statm` (proc(5)): resident pages.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the children of all threads of a process.
fn child_pids(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| -> Vec<i32> {
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    lists.flat_map(pids).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{io::Read as _, process::Command, process::Stdio};

    #[test]
    fn children_count_and_nobody_is_an_error() {
        assert_eq!(resident_pages("900 12 3 4 0 5 0\n"), Some(12));
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // By then there are both.
        parent.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(parent.id()).unwrap();
        let below = child_pids(pid);
        assert_eq!(below.len(), 2);
        let of = |pid| resident_bytes(pid).unwrap();
        assert!(of(pid) > of(below[0]) + of(below[1]));
        for pid in below {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL)
                .unwrap();
        }
        parent.wait().unwrap();
        assert!(matches!(resident_bytes(pid), Err(ProcessError::Proc { .. })));
    }
}
