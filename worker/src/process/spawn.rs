//! Starting a task's program inside its control groups and its own PID namespace.

use std::{
    ffi::{OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::Entry;
use super::{
    Error, Result, Task,
    clone::{Cloned, clone_and_wait},
    exec::{Failure, Image, doors, enter},
};

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

    /// Adds several arguments.
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

    /// Starts it in the groups of `entry` and in a new PID namespace: it is there before its first
    /// instruction. Returns when the program runs.
    ///
    /// The caller sees to it that the VM is not frozen, or the new process stops there.
    ///
    /// # Errors
    /// Which step failed in the new process, and why; or that it did not get as far as its program
    /// before `deadline`. It is killed then, and gone once its VM lets it die.
    #[expect(unsafe_code, reason = "posix_spawn knows no namespaces")]
    pub fn start(&self, entry: &Entry, deadline: Duration) -> Result<Task> {
        let begun = Instant::now();
        let fail = |step, source| Error::Spawn { program: self.path.clone(), step, source };
        let birth = self.prepare(entry)?;
        // SAFETY: `run` makes only system calls, on what was prepared before, and never returns.
        let cloned =
            unsafe { clone_and_wait(libc::CLONE_NEWPID, Some(entry), Birth::run, birth, deadline) };
        match cloned.map_err(|source| fail("making the process", source))? {
            Cloned::Past(task, birth) => match birth.failed.noted(&STEPS) {
                None => Ok(task),
                Some((step, source)) => {
                    task.reap();
                    Err(fail(step, source))
                }
            },
            Cloned::Late => {
                Err(Error::SpawnLate { program: self.path.clone(), after: begun.elapsed() })
            }
        }
    }

    /// Everything that allocates or may fail, done before the new process exists.
    fn prepare(&self, entry: &Entry) -> Result<Birth> {
        let image = Image::of(
            self.path.as_os_str(),
            self.args.iter().map(OsString::as_os_str),
            self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())),
        )
        .map_err(|what| Error::Nul { program: self.path.clone(), what })?;
        let output =
            |path: &Path| open(path, OpenOptions::new().create(true).append(true).mode(0o644));
        Ok(Birth {
            image,
            doors: doors(entry),
            failed: Failure::default(),
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

/// What the new process needs; it uses this one's memory until its program runs.
struct Birth {
    image: Image,
    doors: Vec<RawFd>,
    directory: File,
    stdin: File,
    stdout: File,
    stderr: File,
    failed: Failure,
}

impl Birth {
    /// The new process up to its program; notes the step that failed.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` that was given to the clone.
        let Self { image, doors, directory, stdin, stdout, stderr, failed } =
            unsafe { &*birth.cast::<Self>() };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setsid() < 0 {
                failed.at(0);
            }
            if !enter(doors) {
                failed.at(1);
            }
            if libc::fchdir(directory.as_raw_fd()) < 0 {
                failed.at(2);
            }
            let files = [stdin, stdout, stderr];
            // The worker has its own 0, 1 and 2, so these are all above and dup2 clears CLOEXEC.
            for (target, file) in (0..).zip(files) {
                if libc::dup2(file.as_raw_fd(), target) < 0 {
                    failed.at(3);
                }
            }
            if libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
                failed.at(3);
            }
            image.execute();
            failed.at(4)
        }
    }
}
