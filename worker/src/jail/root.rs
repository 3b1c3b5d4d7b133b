//! The mount namespace of tasks and of the CRIU that works on them.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
    unistd::pivot_root,
};

use super::{Error, Part, Result};

/// The directory of the namespace that is the root of tasks.
pub const CELL: &str = "/cell";
/// The place of CRIU's directory in the namespace.
const CRIU: &str = "run/criu";
/// What programs and libraries are in, where a host has it.
const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// What programs look for in `/etc` that says nothing of the host's users and secrets: where libraries and
/// programs really are, and settings of programs of the system.
const SETTINGS: [&str; 10] = [
    "ld.so.cache",
    "alternatives",
    "localtime",
    "magic",
    "mime.types",
    "services",
    "protocols",
    "fonts",
    "ImageMagick-6",
    "ImageMagick-7",
];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Threads of a task that CRIU can dump. CRIU, in the task, reads of each its control group, which the
/// tasks' `/proc` says to be none of the worker's business.
const THREADS: u32 = 512;

/// What of the worker's is to be seen in a jail.
#[derive(Clone, Debug)]
pub struct Layout {
    /// A directory of the worker's to make the root in; it stays empty.
    pub mount_point: PathBuf,
    /// The directories of tasks, at the path where tasks find them.
    pub tasks: PathBuf,
    /// The programs of tasks, at the path where tasks find them.
    pub programs: PathBuf,
    /// CRIU, where there is one.
    pub criu: Option<PathBuf>,
}

impl Layout {
    /// The path of CRIU in the namespace.
    pub(super) fn criu_inside(&self) -> Option<PathBuf> {
        let name = canonical(self.criu.as_deref()?).ok()?.file_name()?.to_owned();
        Some(Path::new("/").join(CRIU).join(name))
    }
}

fn canonical(program: &Path) -> io::Result<PathBuf> {
    if program.components().count() > 1 {
        return fs::canonicalize(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| p.is_file());
    fs::canonicalize(found.ok_or(io::ErrorKind::NotFound)?)
}

/// Makes the namespace. This thread is in it afterwards, and good for nothing else.
pub(super) fn make(layout: &Layout) -> Result<OwnedFd> {
    let at = |step: &str| Error::at(Part::Mounts, step);
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| at("making the namespace")(e.into()))?;
    // Nothing of it is seen outside. What is laid over a task's directory later is seen here: its quota.
    mount(none(), "/", none(), MsFlags::MS_REC | MsFlags::MS_SLAVE, none())
        .map_err(|e| at("making the mounts its own")(e.into()))?;
    let root = &layout.mount_point;
    build(root, layout).map_err(|(step, source)| at(&step)(source))?;
    enter(root).map_err(at("changing the root"))?;
    File::open("/proc/thread-self/ns/mnt").map(OwnedFd::from).map_err(at("opening the namespace"))
}

/// What was done when it failed, and why.
type Step<T = ()> = std::result::Result<T, (String, io::Error)>;

fn build(root: &Path, layout: &Layout) -> Step {
    create(root, 0o755)?;
    tmpfs(root, "mode=755,size=4m")?;
    let criu = match &layout.criu {
        Some(program) => Some(canonical(program).map_err(|e| (say("find", program), e))?),
        None => None,
    };
    let cell = root.join(CELL.trim_start_matches('/'));
    for place in [root, &cell] {
        system(place)?;
        devices(place)?;
    }
    for directory in ["proc", "run", "tmp"] {
        create(&root.join(directory), 0o755)?;
    }
    let nothing = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let proc = root.join("proc");
    mount(Some("proc"), &proc, Some("proc"), nothing, none())
        .map_err(|e| (say("mount", &proc), e.into()))?;
    // CRIU keeps in /run what it finds out about the kernel, and tries mounts in /tmp.
    tmpfs(&root.join("run"), "mode=755,size=4m")?;
    tmpfs(&root.join("tmp"), "mode=700,size=4m")?;
    if let Some(directory) = criu.as_deref().and_then(Path::parent) {
        bind(directory, &root.join(CRIU), MsFlags::MS_NOSUID)?;
    }
    create(&cell.join("tmp"), 0o755)?;
    shared_memory(&cell)?;
    processes(&cell.join("proc"))?;
    let inside = |path: &Path| cell.join(path.strip_prefix("/").unwrap_or(path));
    let read_only = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    bind(&layout.programs, &inside(&layout.programs), read_only)?;
    bind(&layout.tasks, &inside(&layout.tasks), nothing)
}

/// The directories that programs and libraries are in, read-only.
fn system(place: &Path) -> Step {
    for name in SYSTEM {
        let (from, to) = (Path::new("/").join(name), place.join(name));
        match fs::symlink_metadata(&from) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&from).map_err(|e| (say("read", &from), e))?;
                symlink(target, &to).map_err(|e| (say("link", &to), e))?;
            }
            Ok(found) if found.is_dir() => {
                bind(&from, &to, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
            }
            _ => {}
        }
    }
    let read_only = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    create(&place.join("etc"), 0o755)?;
    for name in SETTINGS {
        let (from, to) = (Path::new("/etc").join(name), place.join("etc").join(name));
        match fs::metadata(&from) {
            Ok(found) if found.is_dir() => bind(&from, &to, read_only)?,
            Ok(found) if found.is_file() => {
                fs::copy(&from, &to).map_err(|e| (say("copy", &to), e))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn devices(place: &Path) -> Step {
    let directory = place.join("dev");
    create(&directory, 0o755)?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), directory.join(name));
        File::create(&to).map_err(|e| (say("create", &to), e))?;
        mount(Some(&from), &to, none(), MsFlags::MS_BIND, none())
            .map_err(|e| (say("bind", &to), e.into()))?;
    }
    Ok(())
}

/// The place where programs share memory by name, all tasks of the worker in one place, as in
/// `/tmp` of a system: what a task has there is memory of its VM.
fn shared_memory(cell: &Path) -> Step {
    let place = cell.join("dev/shm");
    create(&place, 0o755)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = "mode=1777,size=1g,nr_inodes=4096";
    mount(Some("tmpfs"), &place, Some("tmpfs"), flags, Some(options))
        .map_err(|e| (say("mount", &place), e.into()))
}

/// The `/proc` of tasks, which shows them no process. CRIU asks there, in the task, whether it is that of the
/// task's own PID namespace, whose first process the task is, and for its control groups.
fn processes(proc: &Path) -> Step {
    let first = proc.join("1");
    create(&first.join("task"), 0o755)?;
    let link = |target: &str, at: &Path| symlink(target, at).map_err(|e| (say("link", at), e));
    link("1", &proc.join("self"))?;
    link("1/task/1", &proc.join("thread-self"))?;
    for thread in 1..=THREADS {
        link("..", &first.join("task").join(thread.to_string()))?;
    }
    let groups = first.join("cgroup");
    fs::write(&groups, "0::/\n").map_err(|e| (say("write", &groups), e))
}

/// Makes `root` the root of this thread's namespace, read-only, and leaves all else behind.
fn enter(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    std::env::set_current_dir("/")?;
    let again = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(none(), "/", none(), again | MsFlags::MS_NOSUID, none())?;
    Ok(())
}

fn bind(from: &Path, to: &Path, flags: MsFlags) -> Step {
    create(to, 0o755)?;
    let failed = |e: nix::Error| (say("bind", to), io::Error::from(e));
    mount(Some(from), to, none(), MsFlags::MS_BIND, none()).map_err(failed)?;
    let again = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | flags;
    mount(none(), to, none(), again, none()).map_err(failed)
}

fn tmpfs(at: &Path, options: &str) -> Step {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("dormouse-jail"), at, Some("tmpfs"), flags, Some(options))
        .map_err(|e| (say("mount", at), e.into()))
}

/// Makes a directory, and those above it, whatever the umask.
fn create(path: &Path, mode: u32) -> Step {
    let missing = path.ancestors().take_while(|path| !path.exists()).collect::<Vec<_>>();
    for path in missing.into_iter().rev() {
        DirBuilder::new()
            .mode(mode)
            .create(path)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
            .map_err(|e| (say("create", path), e))?;
    }
    Ok(())
}

fn say(action: &str, path: &Path) -> String {
    format!("{action} {}", path.display())
}

fn none() -> Option<&'static str> {
    None
}
