//! A task that tries to break out of its jail.
#![expect(unsafe_code, reason = "what is tried are bare system calls")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::ExitCode,
    ptr, thread,
    time::Duration,
};

/// Name of the file in the task's directory that makes it try again.
pub(crate) const AGAIN: &str = "again";
/// Names of the reports about the first and the second try.
pub(crate) const REPORTS: [&str; 2] = ["first", "second"];
/// The key of a segment of shared memory in the host's IPC namespace.
pub(crate) const SEGMENT: i32 = 0x0D0_1135;
/// The most bytes that the task writes; the next constant is the most processes that it starts.
const BYTES: usize = 80 << 20;
const CHILDREN: usize = 400;

/// Tries everything, waits for [`AGAIN`], and tries everything again. `port` is that of a server outside of the jail,
/// `pid` the worker's process, `other` another task's directory.
pub(crate) fn run([port, pid, other]: [&str; 3]) -> ExitCode {
    let report = |name: &str| {
        let lines: Vec<_> = attempts(port, pid.parse().unwrap(), Path::new(other))
            .into_iter()
            .map(|(what, came)| {
                let came = came.unwrap_or_else(|error| format!("refused: {}", brief(&error)));
                format!("{what}\t{came}\n")
            })
            .collect();
        let partial = format!("{name}.partial");
        fs::write(&partial, lines.concat()).unwrap();
        fs::rename(partial, name).unwrap();
    };
    report(REPORTS[0]);
    while !Path::new(AGAIN).exists() {
        thread::sleep(Duration::from_millis(1));
    }
    report(REPORTS[1]);
    ExitCode::SUCCESS
}

fn brief(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

type Came = io::Result<String>;

fn attempts(port: &str, worker: i32, other: &Path) -> Vec<(&'static str, Came)> {
    let did = || "done".to_owned();
    let call = |result: i64| match result {
        0.. => Ok(did()),
        _ => Err(io::Error::last_os_error()),
    };
    let read = |path: &str| {
        let mut bytes = [0; 16];
        File::open(path).and_then(|mut file| file.read(&mut bytes)).map(|_| did())
    };
    let read_all = |path: &str| match fs::read(path) {
        Ok(bytes) if bytes.is_empty() => Err(io::Error::other("it is empty")),
        read => read.map(|_| did()),
    };
    let write = |path: &Path| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|_| fs::remove_file(path)).map(|_| did())
    };
    let none = ptr::null::<u8>();
    let zeros = [0_u64; 32];
    // SAFETY: numbers, strings that live, and memory that is zero; nothing here is given any of it.
    unsafe {
        vec![
            ("read /etc/shadow", read("/etc/shadow")),
            ("read the host's users", users_of_host()),
            ("read /root", fs::read_dir("/root").map(|_| did())),
            ("read the checkpoints", fs::read_dir("/run/dormouse/checkpoints").map(|_| did())),
            ("list the tasks", fs::read_dir("/run/dormouse/tasks").map(|_| did())),
            ("enter another task's directory", fs::read_dir(other).map(|_| did())),
            ("write to another task's directory", write(&other.join("x"))),
            ("write to /tmp", write(Path::new("/tmp/dormouse-captive"))),
            ("write to /usr", write(Path::new("/usr/dormouse-captive"))),
            ("write to /etc", write(Path::new("/etc/dormouse-captive"))),
            ("write to /run/dormouse/programs", write(Path::new("/run/dormouse/programs/x"))),
            ("write to /proc/sys", write_old("/proc/sys/kernel/core_pattern")),
            ("write to /proc/sysrq-trigger", write_old("/proc/sysrq-trigger")),
            ("write to /sys", write_old("/sys/kernel/mm/ksm/run")),
            ("write to its processors", write(Path::new("/sys/devices/system/cpu/x"))),
            ("read the kernel's arguments", read_all("/proc/cmdline")),
            ("read the kernel's symbols", read_all("/proc/kallsyms")),
            ("read the kernel's memory", read_all("/proc/kcore")),
            ("read the host's devices in /sys", fs::read_dir("/sys/class").map(|_| did())),
            ("see other processes", others("cmdline")),
            ("leave by the root of another process", others("root/etc/shadow")),
            ("leave by the directory of another process", others("cwd/..")),
            ("open the files of another process", others("fd")),
            ("leave by its own root", read("/proc/self/root/etc/shadow")),
            (
                "leave by its own directory",
                fs::read_dir("/proc/self/cwd/../../../checkpoints").map(|_| did()),
            ),
            ("list the mounts of the worker", worker_mounts()),
            ("open the disk", open_disk()),
            ("see the worker in /proc", fs::read(format!("/proc/{worker}/cmdline")).map(|_| did())),
            ("read the worker's memory", read(&format!("/proc/{worker}/mem"))),
            ("signal the worker", call(libc::kill(worker, 0).into())),
            ("signal all others", call(libc::kill(-1, 0).into())),
            ("trace the worker", call(libc::ptrace(libc::PTRACE_SEIZE, worker, 0, 0))),
            (
                "connect to TCP on the host",
                TcpStream::connect(format!("127.0.0.1:{port}")).map(|_| did()),
            ),
            ("connect to an abstract socket", connect_abstract()),
            ("open a packet socket", call(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0).into())),
            (
                "open a netlink socket",
                call(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).into()),
            ),
            ("become root", call(libc::setuid(0).into())),
            (
                "mount",
                in_child(|| {
                    let (what, here) = (c"tmpfs".as_ptr(), c".".as_ptr());
                    let mounted = libc::mount(what, here, what, 0, none.cast());
                    // What others look at is below it.
                    if mounted == 0 {
                        libc::umount2(c"../7".as_ptr(), libc::MNT_DETACH)
                    } else {
                        mounted
                    }
                }),
            ),
            (
                "mount its /proc again",
                in_child(|| {
                    let (proc, flags) = (c"/proc".as_ptr(), libc::MS_BIND | libc::MS_REMOUNT);
                    libc::mount(proc, proc, none.cast(), flags, none.cast())
                }),
            ),
            (
                "take away what hides",
                in_child(|| libc::umount2(c"/proc/sys".as_ptr(), libc::MNT_DETACH)),
            ),
            ("change the root", in_child(|| libc::chroot(c".".as_ptr()))),
            ("make a user namespace", in_child(|| libc::unshare(libc::CLONE_NEWUSER))),
            ("make a mount namespace", in_child(|| libc::unshare(libc::CLONE_NEWNS))),
            (
                "add a key",
                call(libc::syscall(
                    libc::SYS_add_key,
                    c"user".as_ptr(),
                    c"d".as_ptr(),
                    c"d".as_ptr(),
                    1,
                    -3,
                )),
            ),
            ("load a BPF program", call(libc::syscall(libc::SYS_bpf, 0, &raw const zeros, 32))),
            ("userfaultfd", call(libc::syscall(libc::SYS_userfaultfd, 1))),
            ("io_uring", call(libc::syscall(libc::SYS_io_uring_setup, 1, &raw const zeros))),
            (
                "count events of the processor",
                call(libc::syscall(libc::SYS_perf_event_open, &raw const zeros, 0, -1, -1, 0)),
            ),
            ("fill a file", fill()),
            ("make files without end", make_files()),
            ("fork without end", fork_all()),
            ("raise its priority", call(libc::setpriority(libc::PRIO_PROCESS, 0, -20).into())),
            ("SysV shared memory of the host", call(libc::shmget(SEGMENT, 1, 0).into())),
        ]
    }
}

fn write_old(path: &str) -> Came {
    OpenOptions::new().append(true).open(path).map(|_| "done".to_owned())
}

/// Tries to act as users of the host that no jail defines.
fn users_of_host() -> Came {
    let users = fs::read_to_string("/etc/passwd")?;
    match users.lines().any(|line| line.starts_with("daemon:")) {
        true => Ok("done".to_owned()),
        false => Err(io::Error::other("it names root, the task and nobody")),
    }
}

/// Tries to open this file in `/proc` for any process except this one and its threads and children.
fn others(what: &str) -> Came {
    let own = std::process::id();
    let all = fs::read_dir("/proc")?.flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut reached = numbers.filter(|number| *number != own).filter(|number| {
        let path = format!("/proc/{number}/{what}");
        File::open(&path).is_ok_and(|mut file| {
            let mut bytes = [0; 1];
            file.metadata().is_ok_and(|it| it.is_dir())
                || file.read(&mut bytes).is_ok_and(|n| n > 0)
        })
    });
    match reached.next() {
        Some(_) => Ok("done".to_owned()),
        None => Err(io::Error::other("there is no other")),
    }
}

/// Whether this task sees mounts that the worker made for itself or for other tasks.
fn worker_mounts() -> Came {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let others = |line: &&str| {
        let place = line.split(' ').nth(4).unwrap_or_default();
        place.starts_with("/run/dormouse/checkpoints")
            || place.ends_with("/jail")
            || place.ends_with("/test/8")
    };
    match mounts.lines().find(others) {
        Some(_) => Ok("done".to_owned()),
        None if mounts.lines().count() > 200 => Ok("done: many".to_owned()),
        None if Path::new("/root").exists() => Ok("done: those of the host".to_owned()),
        None => Err(io::Error::other("they are only its own")),
    }
}

/// Tries to make many empty files, which count against limits as well.
fn make_files() -> Came {
    const FILES: usize = 70_000;
    fs::create_dir("files")?;
    let failed = (0..FILES).find_map(|n| File::create(format!("files/{n}")).err().map(|e| (n, e)));
    fs::remove_dir_all("files")?;
    match failed {
        Some((_, error)) => Err(io::Error::other(brief(&error))),
        None => Ok(format!("done: {FILES} files")),
    }
}

fn open_disk() -> Came {
    let any = ["/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/fuse"];
    let opened = any.iter().find(|path| File::open(path).is_ok());
    match opened {
        Some(path) => Ok(format!("done: {path}")),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

fn connect_abstract() -> Came {
    use std::os::linux::net::SocketAddrExt as _;
    let name = std::os::unix::net::SocketAddr::from_abstract_name(ABSTRACT)?;
    std::os::unix::net::UnixStream::connect_addr(&name).map(|_| "done".to_owned())
}

/// The name of a socket in the host's network namespace.
pub(crate) const ABSTRACT: &[u8] = b"dormouse-captive";

/// Runs `act` in a child process, as it may change the process if it succeeds.
fn in_child(act: impl FnOnce() -> i32) -> Came {
    // SAFETY: this program has one thread.
    match unsafe { libc::fork() } {
        0 => {
            let errno =
                if act() == 0 { 0 } else { io::Error::last_os_error().raw_os_error().unwrap_or(1) };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(errno) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for that child.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match libc::WEXITSTATUS(status) {
                0 => Ok("done".to_owned()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }
}

fn fill() -> Came {
    // SAFETY: a signal that would end it is ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let mut file = File::create("filled")?;
    let (chunk, mut bytes) = (vec![1; 1 << 20], 0);
    let came = loop {
        match file.write(&chunk) {
            Ok(written) => bytes += written,
            Err(error) => {
                break Err(io::Error::other(format!("{} after {bytes} bytes", brief(&error))));
            }
        }
        if bytes >= BYTES {
            break Ok(format!("done: {bytes} bytes"));
        }
    };
    fs::remove_file("filled")?;
    came
}

fn fork_all() -> Came {
    let mut children = Vec::new();
    let came = loop {
        // SAFETY: this program has one thread, and the child only waits.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: takes nothing.
                unsafe { libc::pause() };
            },
            -1 => {
                let why = brief(&io::Error::last_os_error());
                break Err(io::Error::other(format!("{why} after {} processes", children.len())));
            }
            child => children.push(child),
        }
        if children.len() >= CHILDREN {
            break Ok(format!("done: {CHILDREN} processes"));
        }
    };
    for child in children {
        // SAFETY: children of its own.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, ptr::null_mut(), 0);
        }
    }
    came
}
