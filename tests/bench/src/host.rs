//! The host on which a record was measured, and the commit that was measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The host that benchmarks ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Number of processors that the benchmarks could use.
    pub cores: usize,
    /// Release of the host's kernel.
    pub kernel: String,
    /// Model name of the host's processor; empty if it is not known.
    pub processor: String,
}

impl Host {
    /// The host that this program runs on.
    #[must_use]
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| {
            let (key, name) = line.split_once(':')?;
            (key.trim() == "model name").then(|| name.trim().to_owned())
        });
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: processor.unwrap_or_default(),
        }
    }
}

/// The commit that a clone is at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Hash of the commit; empty where there is no git or no clone.
    pub(crate) hash: String,
    /// Time of the commit in UTC, as git writes it.
    pub(crate) committed: String,
    /// Whether files of the clone differ from the commit.
    pub(crate) is_changed: bool,
}

impl Commit {
    /// The commit of the clone at `root`.
    pub(crate) fn at(root: &Path) -> Self {
        let git = |args: &[&str]| {
            let output = Command::new("git").args(args).current_dir(root).env("TZ", "UTC").output();
            let output = output.ok().filter(|output| output.status.success());
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let committed =
            git(&["show", "-s", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"]);
        Self {
            hash: git(&["rev-parse", "HEAD"]).unwrap_or_default(),
            committed: committed.unwrap_or_default(),
            is_changed: git(&["status", "--porcelain"]).is_some_and(|said| !said.is_empty()),
        }
    }
}

/// The time now in UTC, to the second: `2026-11-27T03:39:00Z`.
pub(crate) fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    let (date, time) = (now.date(), now.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_and_the_time_are_told() {
        let here = Host::here();
        assert!(here.cores > 0 && !here.kernel.is_empty(), "{here:?}");
        let now = now();
        assert!(now.len() == 20 && now.ends_with('Z') && now.as_str() > "2026-01-01", "{now}");
    }

    #[test]
    fn a_folder_that_is_no_clone_has_no_commit() {
        let root = Path::new("/proc");
        assert_eq!(Commit::at(root), Commit::default());
    }
}
