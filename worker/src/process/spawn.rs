//! Starting a task's program inside its control groups and its own PID namespace.

use std::{
    ffi::{OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    ptr,
    time::{Duration, Instant},
};

use nix::sys::wait::{Id, WaitPidFlag, waitid};

use super::{
    Error, Result, Task,
    clone::clone_and_wait,
    exec::{Failure, Image, enter},
    pidfd,
};
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
        let birth = Birth { prepared: &prepared, entry, failed: Failure::default() };
        let task = birth.give().map_err(|source| fail("making the process", source))?;
        let late = started.elapsed() > deadline;
        let failed = birth.failed.noted(&STEPS);
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
        let image = Image::of(
            self.path.as_os_str(),
            self.args.iter().map(OsString::as_os_str),
            self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())),
        )
        .map_err(|what| Error::Nul { program: self.path.clone(), what })?;
        let output =
            |path: &Path| open(path, OpenOptions::new().create(true).append(true).mode(0o644));
        Ok(Prepared {
            image,
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
const STEPS: [&str; 5] = [
    "setsid",
    "entering the control groups",
    "entering its directory",
    "setting up its files",
    "executing it",
];

struct Prepared {
    image: Image,
    directory: File,
    stdin: File,
    stdout: File,
    stderr: File,
}

/// What the new process needs; it shares this one's memory until its program runs.
struct Birth<'a> {
    prepared: &'a Prepared,
    entry: &'a Entry,
    failed: Failure,
}

impl Birth<'_> {
    /// Makes the process, in a new PID namespace, with a pidfd and, under version 2, inside its
    /// group from the start. Returns when its program runs or it has ended.
    #[expect(unsafe_code, reason = "posix_spawn knows no namespaces")]
    fn give(&self) -> io::Result<Task> {
        let (entry, birth) = (Some(self.entry), ptr::from_ref(self).cast());
        // SAFETY: `run` makes only system calls, on what was prepared before, and never returns;
        // `self` lives until then, since this waits.
        unsafe { clone_and_wait(libc::CLONE_NEWPID, entry, Self::run, birth) }
    }

    /// The new process up to its program; notes the step that failed.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` of the thread that waits in `give`.
        let Self { prepared, entry, failed } = unsafe { &*birth.cast::<Self>() };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setsid() < 0 {
                failed.at(0);
            }
            if !enter(entry) {
                failed.at(1);
            }
            if libc::fchdir(prepared.directory.as_raw_fd()) < 0 {
                failed.at(2);
            }
            let files = [&prepared.stdin, &prepared.stdout, &prepared.stderr];
            // The worker has its own 0, 1 and 2, so these are all above and dup2 clears CLOEXEC.
            for (target, file) in (0..).zip(files) {
                if libc::dup2(file.as_raw_fd(), target) < 0 {
                    failed.at(3);
                }
            }
            if libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
                failed.at(3);
            }
            prepared.image.execute();
            failed.at(4)
        }
    }
}
