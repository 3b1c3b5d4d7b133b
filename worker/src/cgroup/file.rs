//! Reading and writing the files of a group by hand; errors always name path and value.
//!
//! Limits and quotas are set by cgroups-rs. What goes by hand, and why ("it" is cgroups-rs 0.3.4):
//!
//! - counters (`cpuacct.usage`, `cpu.stat`, `memory.current`, `memory.events` and their like of
//!   version 1): it reads up to a dozen files for one of them, and what can't be read is 0 to it. A
//!   task would seem to have used nothing;
//! - the creation of a group: it tells nobody that one could not be made;
//! - the freezer: of version 2 it tells the wish (`cgroup.freeze`), not the fact (`cgroup.events`);
//! - `cpu.idle`: it does not know it, and it takes shares of version 1 for weights of version 2;
//! - processes: its `kill` knows version 2 only, its lists leave out the groups below;
//! - a subtree of version 2 handed to us: it looks for controllers at the root of the mount, and
//!   drops the errors of those it can't enable;
//! - the way of a new process into its groups: it moves a process that is there, where ours is born
//!   in them (`CLONE_INTO_CGROUP`) or moves itself.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{CgroupError, Result};

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|source| CgroupError::Read { path: path.to_owned(), source })
}

pub(crate) fn read_u64(path: &Path) -> Result<u64> {
    let content = read(path)?;
    content.trim().parse().map_err(|_| CgroupError::Unexpected {
        path: path.to_owned(),
        content: content.trim().to_owned(),
        expected: "a number".to_owned(),
    })
}

/// Reads one value of a flat-keyed file (`key value` per line).
pub(crate) fn read_key(path: &Path, key: &str) -> Result<u64> {
    let content = read(path)?;
    content
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
        .ok_or_else(|| CgroupError::Unexpected {
            path: path.to_owned(),
            content: content.trim().replace('\n', ", "),
            expected: format!("a line \"{key} <number>\""),
        })
}

/// Writes in one system call, as control group files require; never creates the file.
pub(crate) fn write(path: &Path, value: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|source| CgroupError::Write {
            path: path.to_owned(),
            value: value.to_owned(),
            source,
        })
}

/// Calls `attempt` until it returns a result, with pauses that grow from 100 us to 5 ms.
///
/// The kernel offers no event for most of what is awaited here (a version 1 freezer, a group
/// running empty), hence the polling. At the deadline `late` turns the last state into
/// the error.
pub(crate) fn wait_until<T, S>(
    deadline: Duration,
    mut attempt: impl FnMut() -> Result<std::result::Result<T, S>>,
    late: impl FnOnce(S, Duration) -> CgroupError,
) -> Result<T> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        match attempt()? {
            Ok(value) => return Ok(value),
            Err(last) if started.elapsed() >= deadline => {
                return Err(late(last, started.elapsed()));
            }
            Err(_) => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
    }
}

/// Returns the directories directly below `path`; empty if `path` does not exist.
pub(crate) fn subdirectories(path: &Path) -> Result<Vec<PathBuf>> {
    let fail = |source| CgroupError::Read { path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(fail(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fail)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
