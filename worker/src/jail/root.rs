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

use super::{JailError, JailPart, Result};

/// Directory of the tasks' mount namespace that is the root directory of tasks.
pub const CELL: &str = "/cell";
/// Directory of the tasks' mount namespace where a file system is mounted briefly before it is moved to its final place.
pub(super) const HOLD: &str = "/hold";
/// Directory with the files of `/etc` that are made for a task; `/etc` has links to them.
pub(super) const MADE: &str = "/run/made";
/// Path of CRIU's directory in the tasks' mount namespace.
const CRIU: &str = "run/criu";
/// Directories of programs and libraries, if a host has them.
const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// Files that programs look for in `/etc` and that reveal nothing about the host's users and secrets: where libraries
/// and programs really are, and settings of the system's programs. A star stands for any ending.
const SETTINGS: [&str; 20] = [
    "ld.so.cache",
    "alternatives",
    "debian_version",
    "fonts",
    "gai.conf",
    "ImageMagick-*",
    "java*",
    "localtime",
    "magic",
    "mime.types",
    "openmpi*",
    "os-release",
    "perl",
    "protocols",
    "python*",
    "R",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];
/// Number of entries of `SETTINGS`, from the first on, that CRIU needs.
const SETTINGS_OF_CRIU: usize = 2;
/// The files of `/etc` that are made for each task.
const MADE_FILES: [&str; 4] = ["passwd", "group", "hosts", "hostname"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev` to a process's open files, and to new terminals.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Parts of `/sys` that the jail imitates by files of its own: the number of processors, and the sizes of pages.
const OF_SYS: [&str; 6] = [
    "devices/system/cpu/online",
    "devices/system/cpu/possible",
    "devices/system/cpu/present",
    "kernel/mm/transparent_hugepage/enabled",
    "kernel/mm/transparent_hugepage/hpage_pmd_size",
    "kernel/mm/transparent_hugepage/shmem_enabled",
];
/// Links to folders that are in the tasks' root as on every system.
const FOLDER_LINKS: [(&str, &str); 4] =
    [("var/run", "/run"), ("var/lock", "/run/lock"), ("var/tmp", "/tmp"), ("run/lock", "/tmp")];

/// Paths of the worker that are visible in a jail.
#[derive(Clone, Debug)]
pub struct JailLayout {
    /// A directory of the worker on which the tasks' root is mounted while it is made; outside of the jail the directory stays
    /// empty.
    pub mount_point: PathBuf,
    /// Directories of tasks, at the path where tasks find them.
    pub tasks: PathBuf,
    /// Programs of tasks, at the path where tasks find them.
    pub programs: PathBuf,
    /// Path of CRIU; `None` without CRIU.
    pub criu: Option<PathBuf>,
}

impl JailLayout {
    /// Returns the path of CRIU in the tasks' mount namespace; `None` without CRIU.
    pub(super) fn criu_inside(&self) -> Option<PathBuf> {
        let name = canonical_program(self.criu.as_deref()?).ok()?.file_name()?.to_owned();
        Some(Path::new("/").join(CRIU).join(name))
    }
}

fn canonical_program(program: &Path) -> io::Result<PathBuf> {
    if program.components().count() > 1 {
        return fs::canonicalize(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| p.is_file());
    fs::canonicalize(found.ok_or(io::ErrorKind::NotFound)?)
}

/// Makes the mount namespace, for tasks that use the worker's network or have their own. The calling thread is in this
/// namespace afterwards, and can't be used for anything else.
pub(super) fn make_root(
    layout: &JailLayout,
    lent: &[PathBuf],
    shares_network: bool,
) -> Result<OwnedFd> {
    let at = |step: &str| JailError::at_step(JailPart::Mounts, step);
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| at("making the namespace")(e.into()))?;
    // Nothing of it is seen outside. What is laid over a task's directory later is seen here: its quota.
    mount(no_text(), "/", no_text(), MsFlags::MS_REC | MsFlags::MS_SLAVE, no_text())
        .map_err(|e| at("making the mounts its own")(e.into()))?;
    let root = &layout.mount_point;
    build_root(root, (layout, lent), shares_network).map_err(|(step, source)| at(&step)(source))?;
    enter_root(root).map_err(at("changing the root"))?;
    File::open("/proc/thread-self/ns/mnt").map(OwnedFd::from).map_err(at("opening the namespace"))
}

/// Result of a step; the error is the step in words, and the reason why it failed.
type Step<T = ()> = std::result::Result<T, (String, io::Error)>;

fn build_root(
    root: &Path,
    (layout, lent): (&JailLayout, &[PathBuf]),
    shares_network: bool,
) -> Step {
    create_directory(root, 0o755)?;
    mount_tmpfs(root, "mode=755,size=16m")?;
    let criu = match &layout.criu {
        Some(program) => {
            Some(canonical_program(program).map_err(|e| (describe_action("find", program), e))?)
        }
        None => None,
    };
    let cell = root.join(CELL.trim_start_matches('/'));
    for (place, settings) in [(root, &SETTINGS[..SETTINGS_OF_CRIU]), (&cell, &SETTINGS[..])] {
        bind_system(place)?;
        copy_settings(place, settings)?;
        bind_devices(place)?;
    }
    for directory in ["proc", "run", "tmp", HOLD.trim_start_matches('/')] {
        create_directory(&root.join(directory), 0o755)?;
    }
    let nothing = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // CRIU tells the terminals of tasks from those of its own.
    let terminals = root.join("dev/pts");
    create_directory(&terminals, 0o755)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some("devpts"), &terminals, Some("devpts"), flags, Some("newinstance,mode=620"))
        .map_err(|e| (describe_action("mount", &terminals), e.into()))?;
    let proc = root.join("proc");
    mount(Some("proc"), &proc, Some("proc"), nothing, no_text())
        .map_err(|e| (describe_action("mount", &proc), e.into()))?;
    // CRIU keeps in /run what it finds out about the kernel, and tries mounts in /tmp.
    mount_tmpfs(&root.join("run"), "mode=755,size=4m")?;
    mount_tmpfs(&root.join("tmp"), "mode=700,size=4m")?;
    if let Some(directory) = criu.as_deref().and_then(Path::parent) {
        bind_path(directory, &root.join(CRIU), MsFlags::MS_NOSUID)?;
    }
    small_system(&cell, shares_network)?;
    let inside = |path: &Path| cell.join(path.strip_prefix("/").unwrap_or(path));
    let read_only = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    for folder in lent {
        bind_path(folder, &inside(folder), read_only)?;
    }
    bind_path(&layout.programs, &inside(&layout.programs), read_only)?;
    bind_path(&layout.tasks, &inside(&layout.tasks), nothing)
}

/// Mounts the directories of programs and libraries read-only.
fn bind_system(place: &Path) -> Step {
    for name in SYSTEM {
        let (from, to) = (Path::new("/").join(name), place.join(name));
        match fs::symlink_metadata(&from) {
            Ok(found) if found.is_symlink() => {
                let target =
                    fs::read_link(&from).map_err(|e| (describe_action("read", &from), e))?;
                symlink(target, &to).map_err(|e| (describe_action("link", &to), e))?;
            }
            Ok(found) if found.is_dir() => {
                bind_path(&from, &to, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes the files of the tasks' root other than programs and devices, and the mount points for each task's own files
/// ([`super::view`]).
fn small_system(cell: &Path, shares_network: bool) -> Step {
    let folders = [
        "dev/pts",
        "dev/shm",
        "home",
        "proc",
        "run",
        "tmp",
        "var/cache",
        "var/empty",
        "var/lib",
        "var/log",
    ];
    for folder in folders.into_iter().chain(["sys", MADE.trim_start_matches('/')]) {
        create_directory(&cell.join(folder), 0o755)?;
    }
    let link =
        |target: &str, at: &Path| symlink(target, at).map_err(|e| (describe_action("link", at), e));
    for (name, target) in FOLDER_LINKS {
        link(target, &cell.join(name))?;
    }
    for (name, target) in DEVICE_LINKS {
        link(target, &cell.join("dev").join(name))?;
    }
    let etc = cell.join("etc");
    for name in MADE_FILES {
        link(&format!("{MADE}/{name}"), &etc.join(name))?;
    }
    link("/proc/self/mounts", &etc.join("mtab"))?;
    let (sources, servers) = name_service(shares_network);
    write(&etc.join("nsswitch.conf"), &sources)?;
    write(&etc.join("resolv.conf"), &servers)?;
    write(&etc.join("host.conf"), "multi on\n")?;
    for path in OF_SYS {
        // Without it programs do with less.
        if let Ok(text) = fs::read_to_string(Path::new("/sys").join(path)) {
            let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
            create_directory(&cell.join("sys").join(folder), 0o755)?;
            write(&cell.join("sys").join(path), &text)?;
        }
    }
    Ok(())
}

/// Returns the configuration of name lookups and the list of name servers; the list is empty in a separate network.
fn name_service(shares_network: bool) -> (String, String) {
    let hosts = if shares_network { "files dns" } else { "files" };
    let databases = ["passwd", "group", "shadow", "networks", "protocols", "services", "rpc"];
    let files: String = databases.iter().map(|name| format!("{name}: files\n")).collect();
    let servers = match shares_network {
        true => server_lines(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
        false => "# None: a task's network has nothing but itself.\n".to_owned(),
    };
    (format!("{files}hosts: {hosts}\n"), servers)
}

/// Returns the lines of the host's `resolv.conf` about which servers are asked, and how.
fn server_lines(resolver: &str) -> String {
    let says = |line: &&str| {
        matches!(line.split_whitespace().next(), Some("nameserver" | "search" | "options"))
    };
    resolver.lines().filter(says).map(|line| format!("{line}\n")).collect()
}

/// Copies settings of the host that everybody may read into a root.
fn copy_settings(place: &Path, settings: &[&str]) -> Step {
    let etc = place.join("etc");
    create_directory(&etc, 0o755)?;
    for setting in settings {
        let (folder, name) = setting.rsplit_once('/').unwrap_or(("", setting));
        let from = Path::new("/etc").join(folder);
        for entry in fs::read_dir(&from).into_iter().flatten().flatten() {
            let found = entry.file_name();
            let found = found.to_string_lossy();
            if found == name || name.strip_suffix('*').is_some_and(|it| found.starts_with(it)) {
                create_directory(&etc.join(folder), 0o755)?;
                copy_readable(&entry.path(), &etc.join(folder).join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// Copies a file, a link, or a folder with its contents, without files that only some may read or special files.
fn copy_readable(from: &Path, to: &Path) -> Step {
    let read = |e| (describe_action("read", from), e);
    let found = fs::symlink_metadata(from).map_err(read)?;
    let may = |bits: u32| found.permissions().mode() & bits == bits;
    if found.is_symlink() {
        let target = fs::read_link(from).map_err(read)?;
        return symlink(target, to).map_err(|e| (describe_action("link", to), e));
    }
    if found.is_file() && may(0o004) {
        return fs::copy(from, to).map(drop).map_err(|e| (describe_action("copy", to), e));
    }
    if found.is_dir() && may(0o005) {
        create_directory(to, 0o755)?;
        for entry in fs::read_dir(from).map_err(read)? {
            let entry = entry.map_err(read)?;
            copy_readable(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Step {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o644)))
        .map_err(|e| (describe_action("write", path), e))
}

fn bind_devices(place: &Path) -> Step {
    let directory = place.join("dev");
    create_directory(&directory, 0o755)?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), directory.join(name));
        File::create(&to).map_err(|e| (describe_action("create", &to), e))?;
        mount(Some(&from), &to, no_text(), MsFlags::MS_BIND, no_text())
            .map_err(|e| (describe_action("bind", &to), e.into()))?;
    }
    Ok(())
}

/// Makes `root` the read-only root of this thread's mount namespace, and unmounts everything else in that namespace.
fn enter_root(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    std::env::set_current_dir("/")?;
    let again = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(no_text(), "/", no_text(), again | MsFlags::MS_NOSUID, no_text())?;
    Ok(())
}

fn bind_path(from: &Path, to: &Path, flags: MsFlags) -> Step {
    create_directory(to, 0o755)?;
    let failed = |e: nix::Error| (describe_action("bind", to), io::Error::from(e));
    mount(Some(from), to, no_text(), MsFlags::MS_BIND, no_text()).map_err(failed)?;
    let again = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | flags;
    mount(no_text(), to, no_text(), again, no_text()).map_err(failed)
}

fn mount_tmpfs(at: &Path, options: &str) -> Step {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("dormouse-jail"), at, Some("tmpfs"), flags, Some(options))
        .map_err(|e| (describe_action("mount", at), e.into()))
}

/// Makes a directory, and those above it, whatever the umask is.
fn create_directory(path: &Path, mode: u32) -> Step {
    let missing = path.ancestors().take_while(|path| !path.exists()).collect::<Vec<_>>();
    for path in missing.into_iter().rev() {
        DirBuilder::new()
            .mode(mode)
            .create(path)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
            .map_err(|e| (describe_action("create", path), e))?;
    }
    Ok(())
}

fn describe_action(action: &str, path: &Path) -> String {
    format!("{action} {}", path.display())
}

fn no_text() -> Option<&'static str> {
    None
}
