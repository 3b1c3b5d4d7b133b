//! Rules on what the images of a jailed task may hold.

use std::{collections::BTreeMap, fs, io, path::Path};

use super::{
    entries::{ImageEntries, ImageKind},
    files,
    messages::{
        CoreEntry, CredsEntry, FileEntry, FsEntry, GhostFileEntry, InventoryEntry, PstreeEntry,
        SeccompEntry, TaskKobjIdsEntry, ThreadCoreEntry,
    },
    names::ImageNames,
};
use crate::{
    criu::{CriuError, Result, status::ThreadStatus},
    jail::{CELL, JailCell},
};

/// Names of all image files that CRIU writes for a jailed task, each without the number at its end.
const NAMES: [&str; 15] = [
    "inventory.img",
    "pstree.img",
    "files.img",
    "seccomp.img",
    "cgroup.img",
    "fifo-data.img",
    "filelocks.img",
    "memfd.img",
    "pipes-data.img",
    "remap-fpath.img",
    "sk-queues.img",
    "stats-dump",
    "tty-data.img",
    "tty-info.img",
    "tty.img",
];
const NUMBERED: [&str; 10] = [
    "core-",
    "fdinfo-",
    "fs-",
    "ghost-file-",
    "ids-",
    "mm-",
    "pagemap-",
    "pages-",
    "tcp-stream-",
    "timens-",
];
/// Version of images in which every file has its own magic number.
const VERSION: u32 = 2;
/// States of a process (CRIU's `task-state.h`) that are allowed: running or stopped, and dead.
const ALIVE: [u32; 2] = [1, 3];
const DEAD: [u32; 2] = [2, 6];
/// Seccomp mode of a process with a filter of system calls (linux/seccomp.h).
const FILTERED: u32 = 2;
/// Scheduling policies (sched(7)) other than real-time ones: normal, batch, idle.
const POLICIES: [u32; 3] = [0, 3, 5];
/// Types of a file (inode(7)): regular, directory, FIFO, socket, link.
const TYPES: [u32; 5] = [0o100_000, 0o040_000, 0o010_000, 0o140_000, 0o120_000];

/// Rules on what images may hold to be restored in a cell. The restored processes are checked again by
/// [`TaskInspection`](crate::criu::inspection::TaskInspection).
#[derive(Debug)]
pub(crate) struct ImageRules {
    /// User and group of the task, if tasks have users of their own.
    user: Option<u32>,
    /// Checker of paths below the tasks' root; `None` if tasks have no root of their own.
    names: Option<ImageNames>,
    /// The jail's filter of system calls, in the form of images; `None`: the jail has no filter.
    filter: Option<Vec<u8>>,
    /// Rights of the worker, which no task may exceed.
    worker: ThreadStatus,
    /// Lowest niceness that a task may have: this worker's own, but at most 0, as other workers may have a higher one.
    nice: i32,
    oom_score_adj: i32,
}

impl ImageRules {
    /// Makes the rules for a task of user `user` (`None`: tasks have no users of their own) in `cell`, the jail of a VM's tasks.
    ///
    /// # Errors
    ///
    /// [`CriuError::Inspect`] if the cell or this process can't be read.
    pub(crate) fn rules_for(cell: &JailCell, user: Option<u32>) -> Result<Self> {
        let read = || -> io::Result<Self> {
            let adjusted = fs::read_to_string("/proc/self/oom_score_adj")?;
            Ok(Self {
                user,
                names: cell.open_root()?.map(ImageNames::below_root),
                filter: cell.filter_bytes(),
                worker: ThreadStatus::of_task("self")?,
                nice: rustix::process::getpriority_process(None)?.min(0),
                oom_score_adj: adjusted.trim().parse::<i32>().map_err(io::Error::other)?.min(0),
            })
        };
        read().map_err(|source| CriuError::Inspect { call: "restore", source })
    }

    /// Makes rules for tests, for tasks of a worker without any rights; the tasks have the user `user`, the root `root` and the
    /// filter `filter`.
    #[cfg(test)]
    pub(super) fn for_tests(user: u32, root: fs::File, filter: &[u8]) -> Self {
        Self {
            user: Some(user),
            names: Some(ImageNames::below_root(root)),
            filter: Some(filter.to_vec()),
            worker: ThreadStatus::default(),
            nice: 0,
            oom_score_adj: 0,
        }
    }

    /// Checks that the images in a directory may be restored in the jail of a VM's tasks.
    ///
    /// # Errors
    ///
    /// [`CriuError::Foreign`] with what the images hold that no task of the cell has, or what they lack.
    pub(crate) fn check_images(&self, images: &Path) -> Result<()> {
        self.look_at(images).map_err(|what| CriuError::Foreign { call: "restore", what })
    }

    fn look_at(&self, images: &Path) -> Found {
        let mut others = Vec::new();
        for entry in fs::read_dir(images).map_err(in_file("its directory"))? {
            let name = entry.map_err(in_file("its directory"))?.file_name();
            let name = name.to_string_lossy().into_owned();
            let is_numbered = NUMBERED.iter().any(|known| name.starts_with(known));
            if !(NAMES.contains(&name.as_str()) || is_numbered && name.ends_with(".img")) {
                return Err(format!(
                    "it has a file {name:?}, which the images of a task never have"
                ));
            }
            others.push(name);
        }
        let inventory: InventoryEntry =
            read_only_entry(images, "inventory.img", ImageKind::Inventory)?;
        if inventory.img_version != Some(VERSION) {
            let has = inventory
                .img_version
                .map_or_else(|| "no version".to_owned(), |it| format!("the version {it}"));
            return Err(format!(
                "its images have {has}; this worker restores those of version {VERSION}"
            ));
        }
        if inventory.plugins_entry.is_some_and(|entry| !entry.plugins.is_empty()) {
            return Err("it needs plugins of CRIU".to_owned());
        }
        let outside = inventory.root_ids.ok_or("its inventory has no namespaces")?;
        let filters = self.match_filters(images)?;
        let directories = self.check_tree(images, &outside, &filters)?;
        for name in others.iter().filter(|name| name.starts_with("ghost-file-")) {
            self.check_ghost(images, name)?;
        }
        self.check_files(images, &directories)
    }

    /// Returns, for each filter of system calls in the images, whether it is equal to the jail's filter.
    fn match_filters(&self, images: &Path) -> Found<Vec<bool>> {
        let Some(ours) = &self.filter else { return Ok(Vec::new()) };
        let all: SeccompEntry = read_only_entry(images, "seccomp.img", ImageKind::Filters)?;
        let filters = all.seccomp_filters.into_iter();
        Ok(filters.map(|it| it.filter.is_some_and(|filter| filter == *ours)).collect())
    }

    /// Checks all processes and their threads; returns the numbers of the files that are the processes' root and working
    /// directories.
    fn check_tree(
        &self,
        images: &Path,
        outside: &TaskKobjIdsEntry,
        filters: &[bool],
    ) -> Found<BTreeMap<u32, bool>> {
        let mut directories = BTreeMap::new();
        let in_tree = in_file("pstree.img");
        let opened = ImageEntries::<PstreeEntry>::open(&images.join("pstree.img"), ImageKind::Tree);
        let mut tree = opened.map_err(&in_tree)?;
        let mut inside = None;
        while let Some(process) = tree.next().map_err(&in_tree)? {
            let pid = process.pid.ok_or("a process of it has no number")?;
            let core: CoreEntry =
                read_only_entry(images, &format!("core-{pid}.img"), ImageKind::Core)?;
            let state = core.tc.and_then(|of_process| of_process.task_state).unwrap_or_default();
            if DEAD.contains(&state) {
                continue;
            }
            if !ALIVE.contains(&state) {
                return Err(format!("process {pid} of it is in the state {state}"));
            }
            let ids: TaskKobjIdsEntry =
                read_only_entry(images, &format!("ids-{pid}.img"), ImageKind::Ids)?;
            let namespaces = look_at_namespaces(pid, &ids, outside)?;
            if *inside.get_or_insert(namespaces) != namespaces
                || core.ids.is_some_and(|own| own != ids)
            {
                return Err(format!("process {pid} of it is in namespaces of its own"));
            }
            self.check_core((pid, true), &core, filters)?;
            for thread in process.threads.iter().filter(|thread| **thread != pid) {
                let core = read_only_entry(images, &format!("core-{thread}.img"), ImageKind::Core)?;
                self.check_core((*thread, false), &core, filters)?;
            }
            let at: FsEntry =
                read_only_entry(images, &format!("fs-{pid}.img"), ImageKind::Directories)?;
            let (Some(root), Some(cwd)) = (at.root_id, at.cwd_id) else {
                return Err(format!("process {pid} of it has no root"));
            };
            directories.entry(cwd).or_insert(false);
            directories.insert(root, true);
        }
        match inside {
            Some(_) => Ok(directories),
            None => Err("no process of it is alive".to_owned()),
        }
    }

    /// Checks a thread: its user, its capabilities, its filter, and its use of the processor and of memory.
    fn check_core(
        &self,
        (thread, is_first): (u32, bool),
        core: &CoreEntry,
        filters: &[bool],
    ) -> Found {
        let why = |what: &str| format!("process {thread} of it {what}");
        let own = core.thread_core.as_ref().ok_or_else(|| why("has no state"))?;
        let creds = own.creds.as_ref().ok_or_else(|| why("has no user"))?;
        self.check_creds(creds).map_err(|what| why(&what))?;
        self.check_filters(own, filters, is_first).map_err(why)?;
        let of_process = core.tc.as_ref();
        if of_process
            .is_some_and(|it| it.old_seccomp_mode.is_some() || it.old_seccomp_filter.is_some())
        {
            return Err(why("has a filter in the way of older versions"));
        }
        if !POLICIES.contains(&own.sched_policy.unwrap_or_default()) {
            return Err(why("runs in real time"));
        }
        if own.sched_nice.unwrap_or_default() < self.nice {
            return Err(why("has a raised scheduling priority"));
        }
        let adjusted = of_process.and_then(|it| it.oom_score_adj);
        if adjusted.is_some_and(|adjusted| adjusted < self.oom_score_adj) {
            return Err(why("has a raised priority when memory is short"));
        }
        Ok(())
    }

    fn check_creds(&self, creds: &CredsEntry) -> Found {
        if let Some(user) = self.user {
            self.of_user(creds, user)?;
        }
        match creds.no_new_privs {
            Some(1) => Ok(()),
            _ => Err("can gain new privileges".to_owned()),
        }
    }

    fn of_user(&self, creds: &CredsEntry, user: u32) -> Found {
        let users = [creds.uid, creds.euid, creds.suid, creds.fsuid];
        let groups = [creds.gid, creds.egid, creds.sgid, creds.fsgid];
        if let Some(other) = users.iter().chain(&groups).find(|id| **id != Some(user)) {
            let other = other.map_or_else(|| "nobody".to_owned(), |other| other.to_string());
            return Err(format!("is user or group {other} instead of {user}"));
        }
        if let Some(group) = creds.groups.first() {
            return Err(format!("is also of group {group}"));
        }
        if [&creds.cap_eff, &creds.cap_prm, &creds.cap_amb]
            .iter()
            .any(|set| capability_bits(set) != Some(0))
        {
            return Err("has capabilities".to_owned());
        }
        let within =
            |set: &[u32], most: u64| capability_bits(set).is_some_and(|set| set & !most == 0);
        if !within(&creds.cap_inh, self.worker.inheritable) {
            return Err("could pass on capabilities that the worker does not have".to_owned());
        }
        Ok(())
    }

    /// Checks that the first filter of a thread is the jail's; filters that the thread added itself come after it. If all threads
    /// of a process have the same filters, CRIU stores only those of the first.
    fn check_filters(
        &self,
        own: &ThreadCoreEntry,
        filters: &[bool],
        is_first: bool,
    ) -> Result<(), &'static str> {
        if self.filter.is_none() {
            return Ok(());
        }
        let first = own.seccomp_filter.and_then(|number| filters.get(number as usize));
        match (own.seccomp_mode.unwrap_or_default(), first) {
            (FILTERED, Some(true)) => Ok(()),
            (FILTERED, _) => Err("has a different filter of system calls than tasks here"),
            (0, _) if !is_first => Ok(()),
            _ => Err("has no filter of system calls"),
        }
    }

    /// Checks a file without a name, which CRIU creates again.
    fn check_ghost(&self, images: &Path, name: &str) -> Found {
        let in_ghost = in_file(name);
        let opened = ImageEntries::<GhostFileEntry>::open(&images.join(name), ImageKind::Ghost);
        let ghost = opened.and_then(|mut entries| entries.first_entry()).map_err(in_ghost)?;
        let mode = ghost.mode.unwrap_or_default();
        // Type, and bits that lend a user's rights.
        if !TYPES.contains(&(mode & 0o170_000)) || mode & 0o6_000 != 0 {
            return Err(format!(
                "{name} makes a file with the mode {mode:o} (octal), which is a device's, or has a set-user-ID or set-group-ID bit"
            ));
        }
        match self.user {
            Some(user) if ghost.uid != Some(user) || ghost.gid != Some(user) => {
                let owner = ghost.uid.map_or_else(|| "nobody".to_owned(), |uid| uid.to_string());
                Err(format!("{name} makes a file of user {owner}, which is not the task's, {user}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks all files that the processes have open; `directories` must be directories: the processes' roots and
    /// working directories.
    fn check_files(&self, images: &Path, directories: &BTreeMap<u32, bool>) -> Found {
        let in_files = in_file("files.img");
        let opened = ImageEntries::<FileEntry>::open(&images.join("files.img"), ImageKind::Files);
        let mut files = opened.map_err(&in_files)?;
        let mut left = directories.clone();
        while let Some(file) = files.next().map_err(&in_files)? {
            files::look_at(&file, self.names.as_ref()).map_err(|what| format!("it {what}"))?;
            let Some(is_root) = file.id.and_then(|id| left.remove(&id)) else { continue };
            let name = file.reg.and_then(|file| file.name).unwrap_or_default();
            if is_root && self.names.is_some() && name != CELL {
                return Err(format!("its root is {name:?}, not that of tasks"));
            }
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err("its root or its directory is not one of its files".to_owned()),
        }
    }
}

/// Checks that a process has the namespaces of CRIU, which is in the task's jail, except for the PID namespace; returns the number
/// of the task's own PID namespace.
fn look_at_namespaces(pid: u32, ids: &TaskKobjIdsEntry, outside: &TaskKobjIdsEntry) -> Found<u32> {
    let shared = TaskKobjIdsEntry { pid_ns_id: outside.pid_ns_id, ..*ids };
    if shared != *outside {
        return Err(format!("process {pid} of it is in namespaces that are not the cell's"));
    }
    match ids.pid_ns_id {
        Some(own) if outside.pid_ns_id.is_some_and(|outside| outside != own) => Ok(own),
        _ => Err(format!("process {pid} of it is in no PID namespace of its own")),
    }
}

/// Returns the user of the first process in a directory of images; `None` if it can't be read.
pub(crate) fn user_of(images: &Path) -> Option<u32> {
    let tree = ImageEntries::<PstreeEntry>::open(&images.join("pstree.img"), ImageKind::Tree);
    let pid = tree.ok()?.next().ok()??.pid?;
    let core: CoreEntry =
        read_only_entry(images, &format!("core-{pid}.img"), ImageKind::Core).ok()?;
    core.thread_core?.creds?.uid
}

fn read_only_entry<M: prost::Message + Default>(
    images: &Path,
    name: &str,
    kind: ImageKind,
) -> Found<M> {
    ImageEntries::open(&images.join(name), kind)
        .and_then(ImageEntries::only_entry)
        .map_err(in_file(name))
}

/// Reads a set of capabilities; `None` if it has more bits than there are.
fn capability_bits(words: &[u32]) -> Option<u64> {
    match *words {
        [] => Some(0),
        [low] => Some(u64::from(low)),
        [low, high] => Some(u64::from(high) << 32 | u64::from(low)),
        _ => None,
    }
}

fn in_file(name: &str) -> impl Fn(io::Error) -> String + use<> {
    let name = name.to_owned();
    move |error| format!("{name} can't be read: {error}")
}

/// Result of a check: a value, or what is wrong with the images.
type Found<T = ()> = std::result::Result<T, String>;
