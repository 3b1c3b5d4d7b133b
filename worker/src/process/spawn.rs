//! Starting a task's program inside its control groups and its own PID namespace.

use std::{
    ffi::{CString, OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    },
    path::{Path, PathBuf},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use nix::sys::wait::{Id, WaitPidFlag, waitid};

use super::{Error, Result, Task, clone::clone_and_wait, pidfd};
use crate::cgroup::Entry;

/// A program to start as a task.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Program {
    /// The program at `path`, to be run in `directory`, its output going to the files
    /// `stdout` and `stderr` there. It gets an empty environment.
    ///
    /// For a checkpoint to be restorable on another worker, both paths must be
    /// the same there: see [`workspace`](crate::workspace).
    pub fn new(path: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            stdout: directory.join("stdout"),
            stderr: directory.join("stderr"),
            directory,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts it in the groups of `entry`: it is there before its first instruction. Returns
    /// when the program runs.
    ///
    /// The caller sees to it that the VM is not frozen, or the new process stops there.
    ///
    /// # Errors
    /// Which step failed in the new process, and why; or that it got as far as its program only
    /// after `deadline` (it is killed then).
    pub fn start(&self, entry: &Entry, deadline: Duration) -> Result<Task> {
        let prepared = self.prepare()?;
        let started = Instant::now();
        let fail = |step, source| Error::Spawn { program: self.path.clone(), step, source };
        let birth = Birth { prepared: &prepared, entry, failed: AtomicU64::new(0) };
        let task = birth.give().map_err(|source| fail("making the process", source))?;
        let late = started.elapsed() > deadline;
        let failed = birth.failure();
        if failed.is_none() && !late {
            return Ok(task);
        }
        // Best effort: it may have exited by itself. Reaped in any case.
        let _ = pidfd::send_signal(task.as_fd(), libc::SIGKILL);
        let _ = waitid(Id::PIDFd(task.as_fd()), WaitPidFlag::WEXITED);
        Err(match failed {
            Some((step, source)) => fail(step, source),
            None => Error::SpawnLate { program: self.path.clone(), after: started.elapsed() },
        })
    }

    /// Everything that allocates or may fail, done before the new process exists.
    fn prepare(&self) -> Result<Prepared> {
        let c = |text: &OsStr, what| {
            CString::new(text.as_bytes())
                .map_err(|_| Error::Nul { program: self.path.clone(), what })
        };
        let mut argv = vec![c(self.path.as_os_str(), "its path")?];
        for arg in &self.args {
            argv.push(c(arg, "an argument")?);
        }
        let mut envp = Vec::new();
        for (name, value) in &self.env {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            envp.push(c(&pair, "its environment")?);
        }
        let pointers = |strings: &[CString]| {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        let output =
            |path: &Path| open(path, OpenOptions::new().create(true).append(true).mode(0o644));
        Ok(Prepared {
            argv_pointers: pointers(&argv),
            envp_pointers: pointers(&envp),
            _strings: (argv, envp),
            directory: open(
                &self.directory,
                OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY),
            )?,
            stdin: open(Path::new("/dev/null"), OpenOptions::new().read(true))?,
            stdout: output(&self.stdout)?,
            stderr: output(&self.stderr)?,
        })
    }
}

fn open(path: &Path, options: &OpenOptions) -> Result<File> {
    options.open(path).map_err(|source| Error::Open { path: path.to_owned(), source })
}

/// What the new process does before its program, by the number it notes.
const STEPS: [&str; 6] = [
    "setsid",
    "entering the control groups",
    "entering its directory",
    "setting up its files",
    "executing it",
    "resetting signals",
];

struct Prepared {
    argv_pointers: Vec<*const libc::c_char>,
    envp_pointers: Vec<*const libc::c_char>,
    /// What the pointers point to.
    _strings: (Vec<CString>, Vec<CString>),
    directory: File,
    stdin: File,
    stdout: File,
    stderr: File,
}

/// What the new process needs; it shares this one's memory until its program runs.
struct Birth<'a> {
    prepared: &'a Prepared,
    entry: &'a Entry,
    /// The step that failed, counted from 1, above the kernel's error; zero: none.
    failed: AtomicU64,
}

impl Birth<'_> {
    /// Makes the process, in a new PID namespace, with a pidfd and, under version 2, inside its
    /// group from the start. Returns when its program runs or it has ended.
    #[expect(unsafe_code, reason = "posix_spawn knows no namespaces")]
    fn give(&self) -> io::Result<Task> {
        let mut pidfd: RawFd = -1;
        // SAFETY: all-zero is a valid clone_args: no stack, no TLS, no flags.
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        if let Some(group) = &self.entry.born_in {
            args.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
            args.flags = CLONE_INTO_CGROUP;
        }
        args.flags |= u64::from((libc::CLONE_NEWPID | libc::CLONE_PIDFD).unsigned_abs());
        args.pidfd = &raw mut pidfd as u64;
        args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
        // No handler of the worker may run in the child.
        let blocked = BlockedSignals::all()?;
        // SAFETY: `run` makes only system calls, on what was prepared before, and never returns;
        // `self` lives until then, since this waits.
        let pid = unsafe { clone_and_wait(args, Self::run, ptr::from_ref(self).cast()) };
        drop(blocked);
        let pid = pid?;
        // SAFETY: the kernel stored a new descriptor here, which nobody else owns.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Task::new(pid, pidfd))
    }

    /// The step at which the new process ended, and why.
    fn failure(&self) -> Option<(&'static str, io::Error)> {
        let failed = self.failed.load(Ordering::Acquire);
        let step = usize::try_from(failed >> 32).ok()?.checked_sub(1)?;
        let errno = i32::try_from(failed & u64::from(u32::MAX)).unwrap_or(0);
        let step = STEPS.get(step).copied().unwrap_or("an unknown step");
        Some((step, io::Error::from_raw_os_error(errno)))
    }

    /// The new process up to its program; notes the step that failed.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` of the thread that waits in `give`.
        let Self { prepared, entry, failed } = unsafe { &*birth.cast::<Self>() };
        let fail = |step: u64| -> ! {
            // SAFETY: the waiting thread's errno is this process's, and ending at once is safe.
            unsafe {
                let errno = u64::from((*libc::__errno_location()).unsigned_abs());
                failed.store((step + 1) << 32 | errno, Ordering::Release);
                libc::_exit(127)
            }
        };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setsid() < 0 {
                fail(0);
            }
            if entry.born_in.is_none() {
                for file in &entry.files {
                    if libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1) != 1 {
                        fail(1);
                    }
                }
            }
            if libc::fchdir(prepared.directory.as_raw_fd()) < 0 {
                fail(2);
            }
            let files = [&prepared.stdin, &prepared.stdout, &prepared.stderr];
            // The worker has its own 0, 1 and 2, so these are all above and dup2 clears CLOEXEC.
            for (target, file) in (0..).zip(files) {
                if libc::dup2(file.as_raw_fd(), target) < 0 {
                    fail(3);
                }
            }
            if libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
                fail(3);
            }
            // Rust ignores SIGPIPE, which exec would hand on.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            if libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) < 0 {
                fail(5);
            }
            let path = prepared.argv_pointers.first().copied().unwrap_or(ptr::null());
            libc::execve(path, prepared.argv_pointers.as_ptr(), prepared.envp_pointers.as_ptr());
        }
        fail(4)
    }
}

/// `CLONE_INTO_CGROUP` (linux/sched.h); the libc crate has it as a signed, shortened number.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// All signals blocked in this thread, until dropped.
struct BlockedSignals(nix::sys::signal::SigSet);

impl BlockedSignals {
    fn all() -> io::Result<Self> {
        use nix::sys::signal::{SigSet, SigmaskHow};
        let all = SigSet::all();
        Ok(Self(all.thread_swap_mask(SigmaskHow::SIG_SETMASK)?))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // Setting a mask that was in force before cannot fail.
        let _ = self.0.thread_set_mask();
    }
}
