//! The identity of the process that a PID meant.

use std::{fs, io, os::unix::fs::MetadataExt, path::PathBuf};

use super::{ProcessError, Result};

/// Identity of a process that no later process can have: PIDs are used again, but not together with the same start
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// The PID of the process.
    pub pid: i32,
    /// The time at which the process started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// Returns the identity of this process.
    ///
    /// # Errors
    ///
    /// `/proc` isn't mounted.
    pub fn current_process() -> Result<Self> {
        Self::of_process(nix::unistd::getpid().as_raw())
    }

    /// Returns the identity of the process that has `pid` now.
    ///
    /// # Errors
    ///
    /// No process has this PID.
    pub fn of_process(pid: i32) -> Result<Self> {
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let fail = |source| ProcessError::Proc { path: path.clone(), source };
        let stat = fs::read_to_string(&path).map_err(fail)?;
        let start_ticks = start_of(&stat).ok_or_else(|| {
            fail(io::Error::new(io::ErrorKind::InvalidData, "it has no start time"))
        })?;
        Ok(Self { pid, start_ticks })
    }

    /// Returns whether the process still runs. A zombie doesn't.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid)).is_ok_and(|stat| {
            start_of(&stat) == Some(self.start_ticks)
                && !matches!(stat_field(&stat, 3), None | Some("Z" | "X"))
        })
    }
}

/// Returns a field of `/proc/PID/stat` (proc(5)) that follows the command's name, which may contain blanks and
/// brackets.
fn stat_field(stat: &str, number: usize) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split(' ').nth(number.checked_sub(3)?)
}

fn start_of(stat: &str) -> Option<u64> {
    stat_field(stat, 22)?.parse().ok()
}

/// Returns the inode that identifies the PID namespace of this process.
///
/// # Errors
///
/// `/proc` isn't mounted.
pub fn pid_namespace() -> Result<u64> {
    let path = PathBuf::from("/proc/self/ns/pid");
    match fs::metadata(&path) {
        Ok(metadata) => Ok(metadata.ino()),
        Err(source) => Err(ProcessError::Proc { path, source }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn commands_with_brackets_do_not_confuse() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 991 5 6";
        assert_eq!(start_of(stat), Some(991));
        assert_eq!(stat_field(stat, 3), Some("S"));
        assert_eq!(start_of("nonsense"), None);
    }

    #[test]
    fn this_process_is_alive_and_its_namesake_is_not() {
        let me = ProcessIdentity::current_process().unwrap();
        assert!(me.is_alive());
        assert!(!ProcessIdentity { start_ticks: me.start_ticks + 1, ..me }.is_alive());
    }
}
