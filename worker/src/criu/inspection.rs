//! Inspecting restored processes before they run.
//!
//! CRIU asks by its notification `pre-resume` whether to continue. At that time all restored processes exist with their
//! users, filters and files, and are stopped in their last system call before they run. Processes that break the rules
//! are killed then, and have not run. CRIU itself ignores the answer.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{CriuError, Result, status::ThreadStatus};
use crate::jail::{CELL, JailCell};

/// The namespaces that a task shares with the CRIU that restores it.
const SHARED: [&str; 6] = ["mnt", "net", "ipc", "uts", "user", "cgroup"];
/// Beginnings of the links that `/proc` shows for descriptors and mappings of objects without a path: pipes, sockets, eventfds and
/// the like.
const PATHLESS: [&str; 3] = ["pipe:[", "socket:[", "anon_inode:"];
/// Beginnings of the names that `/proc` gives to memory that is shared without a file.
const MEMORY: [&str; 4] = ["/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"];
/// Seccomp mode of a process with a filter of system calls (linux/seccomp.h).
const FILTERED: u32 = 2;

/// Identity of a file in the kernel: its device, and its inode number on the device.
type FileId = (u64, u64);

/// Inspection of restored processes. Except for the PID namespace, none may have namespaces or rights that CRIU's own process
/// didn't have before it read any image, nor the rights that the jail takes from tasks.
#[derive(Debug)]
pub(super) struct TaskInspection {
    criu: i32,
    user: Option<u32>,
    namespaces: [Option<FileId>; SHARED.len()],
    pid_namespace: Option<FileId>,
    /// The tasks' root; `None` if tasks have no root of their own.
    root: Option<FileId>,
    is_filtered: bool,
    of_criu: ThreadStatus,
}

impl TaskInspection {
    /// Begins to inspect the processes that a CRIU process restores into `cell` (the jail of a VM's tasks) for tasks of user
    /// `user`. CRIU must not have read any image yet.
    ///
    /// # Errors
    ///
    /// [`CriuError::Inspect`] if CRIU's process can't be read.
    pub(super) fn begin_inspection(criu: i32, cell: &JailCell, user: Option<u32>) -> Result<Self> {
        let failed = |source| CriuError::Inspect { call: "restore", source };
        let root = match cell.has_root() {
            true => Some(file_id(&format!("/proc/{criu}/root{CELL}")).map_err(failed)?),
            false => None,
        };
        Ok(Self {
            criu,
            user,
            namespaces: SHARED.map(|name| namespace_of(criu, name)),
            pid_namespace: namespace_of(criu, "pid"),
            root,
            is_filtered: cell.has_filter(),
            of_criu: ThreadStatus::of_task(&criu.to_string()).map_err(failed)?,
        })
    }

    /// Inspects all processes that CRIU has restored: children of this thread other than CRIU, their descendants, and the processes
    /// of `slot` in the same PID namespace. If a process has more rights than a task may have, all are killed.
    ///
    /// # Errors
    ///
    /// In words, what was found.
    pub(super) fn look_at_made(&self, slot: &BTreeSet<i32>) -> std::result::Result<(), String> {
        let made = self.made_processes();
        let looked = self.look_at_all(&made, slot);
        if looked.is_err() {
            // The first of them is their PID namespace's: with it goes all that is in there.
            for pid in made {
                // Stopped and nobody's but CRIU's and this thread's, so that the number is still its own.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        looked
    }

    /// Returns the processes that CRIU has restored, each after its parent.
    fn made_processes(&self) -> Vec<i32> {
        let mut made: Vec<_> = read_children("thread-self/children")
            .into_iter()
            .filter(|pid| *pid != self.criu)
            .collect();
        let mut next = 0;
        while let Some(pid) = made.get(next).copied() {
            next += 1;
            for thread in thread_ids(pid) {
                made.extend(read_children(&format!("{pid}/task/{thread}/children")));
            }
        }
        made
    }

    fn look_at_all(&self, made: &[i32], slot: &BTreeSet<i32>) -> std::result::Result<(), String> {
        let first = *made.first().ok_or("there is no process")?;
        let own = namespace_of(first, "pid");
        if own.is_none() || own == self.pid_namespace {
            return Err(format!("process {first} is in no PID namespace of its own"));
        }
        let mounts = mount_ids(self.criu);
        for &pid in made {
            self.look_at(pid, own, &mounts).map_err(|what| format!("process {pid} {what}"))?;
        }
        // What else is in the slot is in PID namespaces of its own: CRIU's helpers, and ranks of other jobs on this vCPU.
        let is_loose = |pid: &i32| !made.contains(pid) && namespace_of(*pid, "pid") == own;
        match slot.iter().find(|pid| is_loose(pid)) {
            Some(other) => {
                Err(format!("process {other} is in its PID namespace but not in its process tree"))
            }
            None => Ok(()),
        }
    }

    fn look_at(
        &self,
        pid: i32,
        own: Option<FileId>,
        mounts: &BTreeSet<u64>,
    ) -> std::result::Result<(), String> {
        let mut lives = false;
        for thread in thread_ids(pid) {
            let status = ThreadStatus::of_task(&format!("{pid}/task/{thread}"));
            let status = status.map_err(|e| e.to_string())?;
            if !status.is_dead() {
                lives = true;
                self.look_at_thread(&status)?;
            }
        }
        if !lives {
            return Ok(());
        }
        for (name, shared) in SHARED.iter().zip(self.namespaces) {
            if namespace_of(pid, name) != shared {
                return Err(format!("is in another {name} namespace than the cell's"));
            }
        }
        if namespace_of(pid, "pid") != own {
            return Err("is in a PID namespace of its own".to_owned());
        }
        let Some(root) = self.root else { return Ok(()) };
        if file_id(&format!("/proc/{pid}/root")).ok() != Some(root) {
            return Err("has a different root than tasks have".to_owned());
        }
        look_at_files(pid, mounts)
    }

    fn look_at_thread(&self, thread: &ThreadStatus) -> std::result::Result<(), String> {
        if thread.numbers.len() != self.of_criu.numbers.len() + 1 {
            return Err("is not one PID namespace below the worker's".to_owned());
        }
        if let Some(user) = self.user {
            self.look_at_user(thread, user)?;
        }
        if !thread.no_new_privs {
            return Err("can gain new privileges".to_owned());
        }
        if self.is_filtered && thread.seccomp != FILTERED {
            return Err("has no filter of system calls".to_owned());
        }
        Ok(())
    }

    fn look_at_user(&self, thread: &ThreadStatus, user: u32) -> std::result::Result<(), String> {
        if let Some(other) = thread.users.iter().find(|other| **other != user) {
            return Err(format!("is user {other} instead of {user}"));
        }
        if let Some(other) = thread.groups.iter().find(|other| **other != user) {
            return Err(format!("is of group {other} instead of {user}"));
        }
        if let Some(group) = thread.more_groups.first() {
            return Err(format!("is also of group {group}"));
        }
        let of_criu = &self.of_criu;
        let has = thread.permitted | thread.effective | thread.ambient;
        let could_have =
            thread.bounding & !of_criu.bounding | thread.inheritable & !of_criu.inheritable;
        match has | could_have {
            0 => Ok(()),
            more => Err(format!("has the capabilities {more:x}")),
        }
    }
}

/// Checks the directory, the program, the open files and the mapped files of a process: all must be below the tasks' root, in one
/// of `mounts` (ids of mounts), or have no path.
fn look_at_files(pid: i32, mounts: &BTreeSet<u64>) -> std::result::Result<(), String> {
    let unread = |error: std::io::Error| format!("has files that can't be looked at: {error}");
    for link in ["cwd", "exe"] {
        let path = fs::read_link(format!("/proc/{pid}/{link}")).map_err(unread)?;
        if !path.starts_with(CELL) {
            return Err(format!("has {} as its {link}", path.display()));
        }
    }
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let path = fs::read_link(entry.path()).map_err(unread)?;
        let text = path.to_string_lossy();
        if PATHLESS.iter().chain(&MEMORY[..1]).any(|known| text.starts_with(known)) {
            continue;
        }
        let info = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
        let info = fs::read_to_string(info).map_err(unread)?;
        let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        let mount = mount.and_then(|mount| mount.trim().parse().ok());
        if !path.starts_with(CELL) || !mount.is_some_and(|mount| mounts.contains(&mount)) {
            return Err(format!("has {text} open"));
        }
    }
    let maps = fs::read(format!("/proc/{pid}/maps")).map_err(unread)?;
    let maps = String::from_utf8_lossy(&maps);
    // Address, rights, offset, device and number come before it.
    for path in maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5)) {
        let path = path.trim_start();
        if !path.starts_with('/') {
            continue;
        }
        if !Path::new(path).starts_with(CELL) && !MEMORY.iter().any(|it| path.starts_with(it)) {
            return Err(format!("has {path} in its memory"));
        }
    }
    Ok(())
}

fn file_id(path: &str) -> std::io::Result<FileId> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Returns a namespace of a process; `None` if the kernel has no namespaces of this kind, or the process doesn't exist.
fn namespace_of(pid: i32, name: &str) -> Option<FileId> {
    file_id(&format!("/proc/{pid}/ns/{name}")).ok()
}

fn read_children(path: &str) -> Vec<i32> {
    let text = fs::read_to_string(PathBuf::from("/proc").join(path)).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn thread_ids(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the ids of the mounts that a process sees.
fn mount_ids(pid: i32) -> BTreeSet<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}
