//! A task's own view of files, with files and folders of its own; made anew wherever the task starts or is restored.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown},
    },
    path::{Path, PathBuf},
};

use dormouse_folders::remove_tree;
use nix::mount::MsFlags;

use super::{
    CELL,
    root::{HOLD, MADE},
    step::{JailStep, JailSteps},
};

/// Folders in a task's directory for its `/tmp` and its `/dev/shm`: they are part of its checkpoints, and count for
/// the size of the directory.
const FOLDERS: [(&str, &str); 2] = [("tmp", "tmp"), ("shm", "dev/shm")];
/// Folder in an instance's directory for its `/home`.
const HOMES: (&str, &str) = ("home", "home");
/// Mode of a task's `/tmp` and `/dev/shm`, as on every system.
const FOR_ALL: u32 = 0o1777;

/// Parts of `/proc` that are read-only in the tasks' view.
const READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
/// Files of `/proc` about the host that tasks need not know; they appear empty.
const HIDDEN_FILES: [&str; 13] = [
    "buddyinfo",
    "cmdline",
    "config.gz",
    "interrupts",
    "kallsyms",
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "latency_stats",
    "modules",
    "sched_debug",
    "timer_list",
];
/// Folders of `/proc` that are hidden from tasks.
const HIDDEN_FOLDERS: [&str; 6] = ["acpi", "asound", "driver", "dynamic_debug", "pressure", "scsi"];

/// The task that a view of files is made for.
#[derive(Clone, Debug)]
pub struct ViewOccupant {
    /// User of the task; `None` if tasks have no users of their own.
    pub user: Option<u32>,
    /// Path of the task's directory outside of the jail.
    pub directory: PathBuf,
    /// Further names of the user of an instance, which also has a `/home`; `None`: it is a task.
    pub names: Option<Vec<String>>,
}

/// The mount namespace that a process works in.
#[derive(Debug)]
pub enum MountView {
    /// The mount namespace of which each task's own is a copy; no task runs in it.
    Common,
    /// The mount namespace of a running task, as an open file.
    Of(OwnedFd),
    /// A view that is to be made for a task.
    New(NewView),
}

impl MountView {
    /// Opens the mount namespace of process `pid` as a view of files.
    ///
    /// # Errors
    /// The process is gone.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/ns/mnt")).map(|space| Self::Of(space.into()))
    }

    /// Returns the steps of making the view, in words.
    pub(crate) fn step_words(&self) -> Vec<String> {
        match self {
            Self::New(new) => new.0.all_words(),
            Self::Common | Self::Of(_) => Vec::new(),
        }
    }

    /// Makes the view, in a process that is in the common namespace; the error is the number of the step that failed.
    ///
    /// # Safety
    ///
    /// Only in a new process.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn make_view(&self) -> Result<(), u32> {
        match self {
            // SAFETY: its first step is the namespace of its own.
            Self::New(new) => unsafe { new.0.take_all() },
            Self::Common | Self::Of(_) => Ok(()),
        }
    }
}

/// The steps by which a new process makes a task's view of files.
#[derive(Debug)]
pub struct NewView(JailSteps);

impl NewView {
    /// Prepares the view of a task that begins or is restored in a VM called `host`; `with_processes` is for a task
    /// that begins, where the view must be made in the task's PID namespace. `tasks` is the folder of all tasks'
    /// directories.
    ///
    /// # Errors
    ///
    /// The task's folders can't be made, or its directory isn't one of `tasks`.
    pub(super) fn prepare_view(
        occupant: &ViewOccupant,
        tasks: &Path,
        host: &str,
        with_processes: bool,
    ) -> io::Result<Self> {
        let ViewOccupant { user, directory, names } = occupant;
        let folders: Vec<_> = FOLDERS.into_iter().chain(names.as_ref().map(|_| HOMES)).collect();
        provide_folders(directory, *user, &folders)?;
        let mut steps = JailSteps(vec![JailStep::Unshare]);
        let none = Path::new("");
        steps.add_mount(none, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, "")?;
        only_its_directory(&mut steps, directory, tasks)?;
        for (folder, place) in folders {
            steps.add_bind(&path_inside(&directory.join(folder)), &Path::new(CELL).join(place))?;
        }
        let terminals = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        // An ssh server, which is not root, can't give terminals to the group that they are expected to have.
        let options = match names {
            Some(_) => "newinstance,ptmxmode=0666,mode=620,gid=5",
            None => "newinstance,ptmxmode=0666,mode=620",
        };
        steps.add_mount(
            Path::new("devpts"),
            &path_inside(Path::new("/dev/pts")),
            Some("devpts"),
            terminals,
            options,
        )?;
        made_files(&mut steps, occupant, host)?;
        if with_processes {
            steps.0.extend(processes_steps()?.0);
        }
        Ok(Self(steps))
    }
}

/// Prepares the steps by which a process mounts a `/proc` for the PID namespace of its task.
///
/// # Errors A path holds a NUL byte, which none of the paths used here does.
pub(crate) fn processes_view() -> io::Result<NewView> {
    processes_steps().map(NewView)
}

impl NewView {
    /// Carries out the steps of making the view, in a process that is in a task's mount namespace; the error is the
    /// number of the step that failed.
    ///
    /// # Safety
    ///
    /// Only in a new process.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn take_steps(&self) -> Result<(), u32> {
        // SAFETY: as promised by the caller.
        unsafe { self.0.take_all() }
    }

    /// Returns the steps of making the view, in words.
    pub(crate) fn step_words(&self) -> Vec<String> {
        self.0.all_words()
    }
}

fn processes_steps() -> io::Result<JailSteps> {
    let mut steps = JailSteps::default();
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let proc = path_inside(Path::new("/proc"));
    steps.add_mount(Path::new("proc"), &proc, Some("proc"), flags, "")?;
    for name in READ_ONLY {
        steps.add_protection(&proc.join(name))?;
    }
    for name in HIDDEN_FILES {
        steps.add_cover(&path_inside(Path::new("/dev/null")), &proc.join(name))?;
    }
    for name in HIDDEN_FOLDERS {
        steps.add_cover(&path_inside(Path::new("/var/empty")), &proc.join(name))?;
    }
    Ok(steps)
}

/// Adds steps that hide all tasks' directories but `directory`.
fn only_its_directory(steps: &mut JailSteps, directory: &Path, tasks: &Path) -> io::Result<()> {
    let Ok(relative) = directory.strip_prefix(tasks) else {
        let why = format!("{} is not in {}", directory.display(), tasks.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    };
    let (tasks, hold) = (path_inside(tasks), Path::new(HOLD));
    steps.add_bind(&path_inside(directory), hold)?;
    steps.add_unmount(&tasks)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    steps.add_mount(
        Path::new("tasks"),
        &tasks,
        Some("tmpfs"),
        flags,
        "mode=711,size=64k,nr_inodes=16",
    )?;
    let mut path = tasks;
    for part in relative.components() {
        path.push(part);
        steps.add_directory(&path, 0o711)?;
    }
    steps.add_mount(hold, &path, None, MsFlags::MS_MOVE, "")
}

/// Adds steps that make the files of `/etc` that differ from task to task, as they have the task's user or its VM's name.
fn made_files(steps: &mut JailSteps, occupant: &ViewOccupant, host: &str) -> io::Result<()> {
    let ViewOccupant { user, directory, names } = occupant;
    let made = path_inside(Path::new(MADE));
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    steps.add_mount(
        Path::new("made"),
        &made,
        Some("tmpfs"),
        flags,
        "mode=755,size=64k,nr_inodes=16",
    )?;
    let (mut users, mut groups) = (String::new(), String::new());
    if let Some(user) = user {
        let home = directory.join("work");
        let names = [NAME].into_iter().chain(names.iter().flatten().map(String::as_str));
        let line = |name| format!("{name}:x:{user}:{user}::{}:{SHELL}\n", home.display());
        users = names.map(line).collect();
        groups = format!("{NAME}:x:{user}:\n");
    }
    let root = format!("root:x:0:0:root:/:{SHELL}\n");
    let nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
    steps.add_file(&made.join("passwd"), format!("{root}{users}{nobody}"))?;
    steps.add_file(
        &made.join("group"),
        format!("root:x:0:\ntty:x:5:\n{groups}nogroup:x:65534:\n"),
    )?;
    steps.add_file(&made.join("hostname"), format!("{host}\n"))?;
    let hosts = format!(
        "127.0.0.1 localhost\n127.0.1.1 {host}\n::1 localhost ip6-localhost ip6-loopback\n"
    );
    steps.add_file(&made.join("hosts"), hosts)
}

/// The name of every task's user.
pub const NAME: &str = "task";
/// Setting of Open MPI, which copies messages within a host by a call that the filter refuses, as containers' filters
/// do; with it, messages are copied twice.
pub const ONE_COPY: (&str, &str) = ("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
/// The shell of every task's user.
pub const SHELL: &str = "/bin/sh";

/// Makes the missing folders of a task that is not running, and gives them to the task.
fn provide_folders(
    directory: &Path,
    user: Option<u32>,
    folders: &[(&str, &str)],
) -> io::Result<()> {
    for (folder, _) in folders {
        let path = directory.join(folder);
        match fs::symlink_metadata(&path) {
            // Of a checkpoint: it is the task's, who may have put something else in its place.
            Ok(found) if found.is_dir() => {}
            Ok(_) => fs::remove_file(&path).and_then(|()| make_folder(&path, user))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_folder(&path, user)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Empties a task's `/tmp` and `/dev/shm`, in the directory of a task that is not running.
///
/// # Errors
///
/// Something in them can't be removed.
pub fn empty_folders(directory: &Path) -> io::Result<()> {
    FOLDERS.into_iter().try_for_each(|(folder, _)| remove_tree(&directory.join(folder)))
}

fn make_folder(path: &Path, user: Option<u32>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(FOR_ALL))?;
    // The owner comes last: only CAP_FOWNER may change another user's, and containers lack it.
    match user {
        Some(user) => chown(path, Some(user), Some(user)),
        None => Ok(()),
    }
}

/// Converts the path of a file as a task sees it to the path in the mount namespace.
fn path_inside(path: &Path) -> PathBuf {
    Path::new(CELL).join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_place_of_a_folder_leads_nowhere() {
        let tasks = tempfile::tempdir().unwrap();
        let directory = tasks.path().join("run/7");
        fs::create_dir_all(&directory).unwrap();
        symlink("/", directory.join("tmp")).unwrap();
        let occupant = ViewOccupant { user: None, directory: directory.clone(), names: None };
        let view = NewView::prepare_view(&occupant, tasks.path(), "vm7", true).unwrap();
        for folder in ["tmp", "shm"] {
            let found = fs::symlink_metadata(directory.join(folder)).unwrap();
            assert!(found.is_dir() && found.permissions().mode() & 0o7777 == 0o1777, "{folder}");
        }
        let words = view.step_words();
        assert_eq!(words.first().unwrap(), "making a mount namespace of its own");
        let after = |what: &str| words.iter().position(|it| it == what).unwrap();
        let first = words.iter().position(|it| it.starts_with("unmounting")).unwrap();
        assert!(first < after("mounting /cell/tmp"), "{words:?}");
        assert!(after("mounting /cell/proc") < after("mounting /cell/proc/kcore"), "{words:?}");
        fs::write(directory.join("tmp/left"), "").unwrap();
        empty_folders(&directory).unwrap();
        assert!(!directory.join("tmp").exists());
    }

    #[test]
    fn a_directory_that_is_not_among_the_tasks_is_refused() {
        let (tasks, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let occupant = ViewOccupant { user: None, directory: other.path().to_owned(), names: None };
        let refused = NewView::prepare_view(&occupant, tasks.path(), "vm7", true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
