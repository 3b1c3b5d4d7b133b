//! A worker's jail, and the cells in it: one for each VM.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    ptr,
    sync::Arc,
    thread,
};

use nix::sched::{CloneFlags, unshare};

use super::{
    CELL, JailDemand, JailError, JailLayout, JailPart, MountView, NewView, ProgramBounds, Result,
    UserRange, ViewOccupant,
    filter::{self, FilterProgram},
    lo, root,
};

/// The jail of a worker's tasks: what all tasks' jails have in common.
#[derive(Debug)]
pub struct TaskJail {
    users: Option<UserRange>,
    mounts: Option<OwnedFd>,
    /// Path of CRIU inside the tasks' mount namespace; `None`: without CRIU, or tasks have no such namespace.
    criu: Option<PathBuf>,
    /// The folder of the tasks' directories, as the worker sees it.
    tasks: PathBuf,
    has_ipc: bool,
    has_name: bool,
    has_network: bool,
    /// True if CRIU can read and set the limits of a task only when CRIU has the task's user.
    lends_user: bool,
    filter: Option<FilterProgram>,
    lacking: Vec<JailError>,
}

/// Requirements on a jail.
#[derive(Clone, Debug, Default)]
pub struct JailRequest {
    /// Which parts of the jail the user demands.
    pub demand: JailDemand,
    /// Range of user ids that tasks get.
    pub users: UserRange,
    /// True if tasks may use the worker's network.
    pub shares_network: bool,
    /// Folders of the worker's host that tasks may read.
    pub mounts: Vec<PathBuf>,
}

impl TaskJail {
    /// Builds a jail from the parts that are available on this host; returns `None` if no jail is demanded.
    ///
    /// Must be called before there are VMs; it starts threads, which have all ended when it returns.
    ///
    /// # Errors
    ///
    /// The first missing part, if all are demanded.
    pub fn build_jail(wanted: &JailRequest, layout: &JailLayout) -> Result<Option<Arc<Self>>> {
        if wanted.demand == JailDemand::None {
            return Ok(None);
        }
        let mut lacking = Vec::new();
        let mut have = |part: Result<()>| part.map_err(|error| lacking.push(error)).is_ok();
        let users = have(can_be_others()).then_some(wanted.users);
        let mut mounts = None;
        have(
            run_apart(
                || root::make_root(layout, &wanted.mounts, wanted.shares_network),
                JailPart::Mounts,
            )
            .map(|made| mounts = Some(made)),
        );
        let has_ipc = have(ipc_namespace().map(drop));
        let has_name = have(name("dormouse").map(drop));
        let has_network = !wanted.shares_network && have(network_namespace().map(drop));
        let mut made = None;
        let compiled = filter::filter_program().map(|program| made = Some(program));
        have(compiled.map_err(JailError::at_step(JailPart::Filter, "compiling it")));
        if wanted.demand == JailDemand::Full && !lacking.is_empty() {
            return Err(lacking.swap_remove(0));
        }
        let criu = mounts.as_ref().and_then(|_| layout.criu_inside());
        let lends_user = users.is_some() && !has_capability(SYS_RESOURCE).unwrap_or(false);
        let tasks = layout.tasks.clone();
        Ok(Some(Arc::new(Self {
            users,
            mounts,
            criu,
            tasks,
            has_ipc,
            has_name,
            has_network,
            lends_user,
            filter: made,
            lacking,
        })))
    }

    /// Returns the parts that aren't available on this host, and why.
    #[must_use]
    pub fn lacking_parts(&self) -> &[JailError] {
        &self.lacking
    }

    /// Returns the range of user ids for tasks, if tasks have users of their own.
    #[must_use]
    pub fn user_range(&self) -> Option<UserRange> {
        self.users
    }

    /// Makes the namespaces of the tasks of a VM with the name `host`.
    ///
    /// # Errors
    /// A namespace that can't be made.
    pub fn make_cell(self: &Arc<Self>, host: &str) -> Result<Arc<JailCell>> {
        let (ipc, network) = (
            self.has_ipc.then(ipc_namespace).transpose()?,
            self.has_network.then(network_namespace).transpose()?,
        );
        let name = self.has_name.then(|| name(host)).transpose()?;
        let host = host.to_owned();
        Ok(Arc::new(JailCell { jail: Arc::clone(self), host, ipc, name, network }))
    }
}

/// Namespaces of the tasks of a VM. The namespaces outlive every task, so that a restored task gets the same ones; they
/// end when the last reference is dropped.
#[derive(Debug)]
pub struct JailCell {
    jail: Arc<TaskJail>,
    /// The name of the VM, as its tasks see it.
    host: String,
    ipc: Option<OwnedFd>,
    name: Option<OwnedFd>,
    network: Option<OwnedFd>,
}

impl JailCell {
    /// Returns the path of CRIU inside the jail, if it differs from the path outside.
    #[must_use]
    pub fn criu_inside(&self) -> Option<&Path> {
        self.jail.criu.as_deref()
    }

    /// Returns whether CRIU can read and set the limits of a task only when CRIU has the task's user.
    pub(crate) fn lends_user(&self) -> bool {
        self.jail.lends_user
    }

    /// Returns whether tasks have a root directory of their own.
    #[must_use]
    pub fn has_root(&self) -> bool {
        self.jail.mounts.is_some()
    }

    /// Returns the mount namespace of tasks, if tasks have one of their own.
    pub(super) fn mount_namespace(&self) -> Option<&OwnedFd> {
        self.jail.mounts.as_ref()
    }

    /// Returns the filter of system calls, if there is one.
    pub(super) fn call_filter(&self) -> Option<&FilterProgram> {
        self.jail.filter.as_ref()
    }

    /// Returns whether tasks have a network namespace of their own.
    pub(crate) fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// Runs `work` in the tasks' network namespace, in a separate thread.
    ///
    /// # Errors
    ///
    /// The tasks have no network of their own, that network can't be entered, or `work` fails.
    pub(crate) fn in_network<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let Some(network) = &self.network else {
            return Err(io::Error::other("tasks share the host's network"));
        };
        let enter = || {
            nix::sched::setns(network, CloneFlags::CLONE_NEWNET)?;
            work()
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("network".to_owned());
            let thread = thread.spawn_scoped(scope, enter)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })
    }

    /// Returns the user id that owns this directory; `None` if tasks have no users of their own.
    ///
    /// # Errors
    ///
    /// The owner can't be the user of a task.
    pub fn directory_user(&self, directory: &Path) -> io::Result<Option<u32>> {
        use std::os::unix::fs::MetadataExt as _;
        let Some(users) = self.jail.users else { return Ok(None) };
        let owner = std::fs::symlink_metadata(directory)?.uid();
        if !users.contains_user(owner) {
            let why = format!("it is user {owner}'s, and tasks are those of {users}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Some(owner))
    }

    /// Makes the view of the file system for a task that begins, or that CRIU restores.
    ///
    /// # Errors
    /// The task's own folders can't be made.
    pub(crate) fn new_view(&self, occupant: &ViewOccupant, begins: bool) -> io::Result<MountView> {
        if !self.has_root() {
            return Ok(MountView::Common);
        }
        NewView::prepare_view(occupant, &self.jail.tasks, &self.host, begins).map(MountView::New)
    }

    /// Opens the view of the file system that the task with this process id has.
    ///
    /// # Errors
    /// The task is gone.
    pub(crate) fn view_of(&self, pid: i32) -> io::Result<MountView> {
        if self.has_root() { MountView::of_process(pid) } else { Ok(MountView::Common) }
    }

    /// Moves this process into the namespaces of the cell; if the view is new, [`MountView::make_view`] does the
    /// mounts.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn enter_namespaces(&self, view: &MountView) -> bool {
        let own = match view {
            MountView::Of(space) => Some(space),
            MountView::Common | MountView::New(_) => self.jail.mounts.as_ref(),
        };
        let spaces = [self.ipc.as_ref(), self.name.as_ref(), self.network.as_ref(), own];
        spaces.into_iter().flatten().all(|space| {
            // SAFETY: takes numbers. The kind of a namespace is the descriptor's own.
            unsafe { libc::setns(space.as_raw_fd(), 0) == 0 }
        })
    }

    /// Makes the tasks' root directory the root directory of this process, if tasks have one of their own. The process
    /// must be in the namespaces.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn take_root(&self) -> bool {
        const ROOT: &CStr = c"/cell";
        const { assert!(ROOT.to_bytes().len() == CELL.len()) };
        // SAFETY: a string that lives for ever.
        !self.has_root() || unsafe { libc::chroot(ROOT.as_ptr()) == 0 }
    }

    /// Sets the limits of a task.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn set_limits(&self, bounds: ProgramBounds) -> bool {
        bounds.resource_limits().iter().all(|(what, most)| {
            // SAFETY: reads and writes records that are this function's.
            unsafe {
                let mut now: libc::rlimit = std::mem::zeroed();
                if libc::getrlimit(*what, &raw mut now) < 0 {
                    return false;
                }
                // What is less already can't be raised by everybody.
                let most = (*most).min(now.rlim_max);
                let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
                libc::setrlimit(*what, &raw const limit) == 0
            }
        })
    }

    /// Changes this process to user `user` for good (`None`: it keeps its user), and removes every way to gain new privileges.
    ///
    /// # Safety In a new process only: bare system calls change this process alone, unlike the C library's functions. The memory
    /// that the process shares is no longer "dumpable" then, so that nobody of that user can trace it.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn become_user(user: Option<u32>) -> bool {
        // SAFETY: takes numbers.
        unsafe {
            if let Some(user) = user
                && (libc::syscall(libc::SYS_setgroups, 0, ptr::null::<libc::gid_t>()) < 0
                    || libc::syscall(libc::SYS_setresgid, user, user, user) < 0
                    || libc::syscall(libc::SYS_setresuid, user, user, user) < 0)
            {
                return false;
            }
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        }
    }

    /// Puts the filter of system calls in force for this process, which must have no way to new privileges.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn refuse_calls(&self) -> bool {
        let Some(program) = &self.jail.filter else { return true };
        let program = libc::sock_fprog {
            len: u16::try_from(program.len()).unwrap_or(0),
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel reads the program, which lives as long as this. Tasks run nobody's code but
        // their own, so that what the kernel does against speculation would only slow them down.
        unsafe {
            let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            ) == 0
        }
    }

    /// Gives this process a task's user as real user while it stays root otherwise: without CAP_SYS_RESOURCE a process
    /// may read and set the limits only of processes of its own real user (prlimit(2)).
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(crate) unsafe fn become_root_for(user: u32) -> bool {
        // SAFETY: takes numbers.
        unsafe {
            libc::syscall(libc::SYS_setresgid, user, 0, 0) == 0
                && libc::syscall(libc::SYS_setresuid, user, 0, 0) == 0
        }
    }
}

/// Converts a path that was read in `/proc` outside of a task's namespace, and that may begin with the tasks' root, to
/// the path inside. `None` if the file is in a folder that each task has for itself.
#[must_use]
pub fn path_inside(path: &Path) -> Option<PathBuf> {
    // In the worker's own namespace there is nothing of that name.
    let Ok(rest) = path.strip_prefix(CELL) else { return Some(path.to_owned()) };
    let is_own = OWN_FOLDERS.iter().any(|folder| rest.starts_with(folder));
    (!is_own).then(|| Path::new("/").join(rest))
}

/// Folders that are separate for each task, or that exist in the tasks' root but not for the worker.
const OWN_FOLDERS: [&str; 7] = ["dev", "etc", "proc", "run/made", "sys", "tmp", "var"];

/// Numbers of the capabilities that the worker needs (linux/capability.h), here of CAP_CHOWN.
const CHOWN: u32 = 0;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const SYS_RESOURCE: u32 = 24;

/// Checks that this process can become other users and give files to them.
fn can_be_others() -> Result<()> {
    let fail = |source| JailError {
        part: JailPart::User,
        step: "becoming another user".to_owned(),
        source,
    };
    for (bit, name) in [(CHOWN, "CHOWN"), (SETGID, "SETGID"), (SETUID, "SETUID")] {
        if !has_capability(bit).map_err(fail)? {
            let why = format!("CAP_{name} is lacking");
            return Err(fail(io::Error::new(io::ErrorKind::PermissionDenied, why)));
        }
    }
    Ok(())
}

fn has_capability(bit: u32) -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    Ok(effective.unwrap_or(0) >> bit & 1 == 1)
}

fn ipc_namespace() -> Result<OwnedFd> {
    run_apart(|| new_namespace(CloneFlags::CLONE_NEWIPC, "ipc", JailPart::Ipc), JailPart::Ipc)
}

fn name(host: &str) -> Result<OwnedFd> {
    let make = || {
        let made = new_namespace(CloneFlags::CLONE_NEWUTS, "uts", JailPart::Name)?;
        let named = nix::unistd::sethostname(host);
        named.map_err(|e| JailError::at_step(JailPart::Name, "naming the host")(e.into()))?;
        Ok(made)
    };
    run_apart(make, JailPart::Name)
}

fn network_namespace() -> Result<OwnedFd> {
    let make = || {
        let made = new_namespace(CloneFlags::CLONE_NEWNET, "net", JailPart::Network)?;
        lo::switch_on()
            .map_err(JailError::at_step(JailPart::Network, "switching its loopback on"))?;
        Ok(made)
    };
    run_apart(make, JailPart::Network)
}

/// Creates a new namespace of the kind `flag`, in which this thread is afterwards.
fn new_namespace(flag: CloneFlags, name: &str, part: JailPart) -> Result<OwnedFd> {
    unshare(flag).map_err(|e| JailError::at_step(part, "making the namespace")(e.into()))?;
    let opened = File::open(format!("/proc/thread-self/ns/{name}"));
    opened.map(OwnedFd::from).map_err(JailError::at_step(part, "opening the namespace"))
}

/// Runs `make`, which changes its thread's namespaces, in a separate thread.
fn run_apart<T: Send>(make: impl FnOnce() -> Result<T> + Send, part: JailPart) -> Result<T> {
    thread::scope(|scope| {
        let made = thread::Builder::new().name("jail".to_owned()).spawn_scoped(scope, make);
        let thread = made.map_err(JailError::at_step(part, "starting a thread"))?;
        thread.join().unwrap_or_else(|_| {
            Err(JailError::at_step(part, "making it")(io::Error::other("the thread panicked")))
        })
    })
}
