//! Starting a task's program inside its control groups, its own PID namespace and its cell.

use std::ffi::{CStr, CString, OsStr, OsString, c_void};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clone::{CloneOutcome, clone_and_wait};
use super::exec::{ExecImage, FailedStep, enter_groups, group_files};
use super::{ChildProcess, ProcessError, Result};
use crate::jail::{JailCell, MountView, ProgramBounds, ViewOccupant};

/// Program to start as a task.
#[derive(Debug, Clone)]
pub struct ProgramCommand {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
    bounds: ProgramBounds,
    names: Option<Vec<String>>,
}

impl ProgramCommand {
    /// Makes a program whose file is `path`, and which is run in `directory`. Its output goes to the files `stdout` and `stderr` in
    /// that directory. Its environment is empty.
    ///
    /// Another worker can restore a checkpoint of the program only if both paths are the same on that worker: see
    /// [`workspace`](crate::workspace).
    pub fn new(path: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            stdout: directory.join("stdout"),
            stderr: directory.join("stderr"),
            directory,
            bounds: ProgramBounds::default(),
            names: None,
        }
    }

    /// Gives the program the view of an instance, whose user has these names, too.
    #[must_use]
    pub fn user_names(mut self, names: Vec<String>) -> Self {
        self.names = Some(names);
        self
    }

    /// Sets the limits on what the program may use in a jail.
    #[must_use]
    pub fn bounds(mut self, bounds: ProgramBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Adds one argument.
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

    /// Sets one variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the program in the groups of `entry`, which it enters before its first instruction, and in a new PID
    /// namespace. Returns when the program runs. If `entry` has a cell, the program is jailed there and runs as the
    /// owner of its directory.
    ///
    /// The caller ensures that the VM isn't frozen; otherwise the new process stops in its group.
    ///
    /// # Errors
    ///
    /// A step fails in the new process: the error says which one and why. Or the process doesn't reach its program
    /// before `deadline`: it is killed, and is gone once its VM lets it die.
    #[expect(unsafe_code, reason = "posix_spawn knows no namespaces")]
    pub fn start_task(&self, entry: &ProcessGroups, deadline: Duration) -> Result<ChildProcess> {
        let begun = Instant::now();
        let fail =
            |step: String, source| ProcessError::Spawn { program: self.path.clone(), step, source };
        let birth = self.prepare_birth(entry)?;
        // SAFETY: `run` makes only system calls, on what was prepared before, and never returns.
        let cloned = unsafe {
            clone_and_wait(libc::CLONE_NEWPID, Some(entry), SpawnBirth::run, birth, deadline)
        };
        match cloned.map_err(|source| fail("making the process".to_owned(), source))? {
            CloneOutcome::Past(task, birth) => match birth.failed_step() {
                None => Ok(task),
                Some((step, source)) => {
                    task.reap_ended();
                    Err(fail(step, source))
                }
            },
            CloneOutcome::Late => {
                Err(ProcessError::SpawnLate { program: self.path.clone(), after: begun.elapsed() })
            }
        }
    }

    /// Does everything that allocates or may fail before the new process exists.
    fn prepare_birth(&self, entry: &ProcessGroups) -> Result<SpawnBirth> {
        let image = ExecImage::new(
            self.path.as_os_str(),
            self.args.iter().map(OsString::as_os_str),
            self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())),
        )
        .map_err(|what| ProcessError::Nul { program: self.path.clone(), what })?;
        let c = |path: &Path, what| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|_| ProcessError::Nul { program: self.path.clone(), what })
        };
        let user = match &entry.cell {
            Some(cell) => cell
                .directory_user(&self.directory)
                .map_err(|source| ProcessError::Open { path: self.directory.clone(), source })?,
            None => None,
        };
        let (directory, names) = (self.directory.clone(), self.names.clone());
        let occupant = ViewOccupant { user, directory, names };
        let view = match &entry.cell {
            Some(cell) => cell
                .new_view(&occupant, true)
                .map_err(|source| ProcessError::Open { path: self.directory.clone(), source })?,
            None => MountView::Common,
        };
        Ok(SpawnBirth {
            view,
            image,
            doors: group_files(entry),
            cell: entry.cell.clone(),
            user,
            bounds: self.bounds,
            failed: FailedStep::default(),
            directory: c(&self.directory, "its directory")?,
            stdout: c(&self.stdout, "its output")?,
            stderr: c(&self.stderr, "its output")?,
        })
    }
}

/// Steps that a new process takes before it runs its program, indexed by the number that it records when a step fails.
const STEPS: [&str; 9] = [
    "setsid",
    "entering the control groups",
    "entering its namespaces",
    "entering its root",
    "setting its limits",
    "becoming its user",
    "entering its directory",
    "setting up its files",
    "executing it",
];

/// Number that stands for the first step of making the task's view of files, behind the numbers of [`STEPS`].
const AFTER_STEPS: u32 = 9;
const _: () = assert!(STEPS.len() == AFTER_STEPS as usize);

/// Data that the new process needs, in memory of this process, which both share until the new process runs its program.
struct SpawnBirth {
    image: ExecImage,
    doors: Vec<RawFd>,
    cell: Option<Arc<JailCell>>,
    view: MountView,
    user: Option<u32>,
    bounds: ProgramBounds,
    directory: CString,
    stdout: CString,
    stderr: CString,
    failed: FailedStep,
}

impl SpawnBirth {
    /// Returns the step at which the new process failed, in words, and the error; `None`: it didn't fail.
    fn failed_step(&self) -> Option<(String, std::io::Error)> {
        let words = self.view.step_words();
        let steps = STEPS.into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>();
        self.failed.failed_step(&steps).map(|(step, source)| (step.to_owned(), source))
    }

    /// Code that the new process runs until it executes its program; if a step fails, it records the step's number.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` that was given to the clone.
        let Self { image, doors, cell, view, user, bounds, directory, stdout, stderr, failed } =
            unsafe { &*birth.cast::<Self>() };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setsid() < 0 {
                failed.fail_at(0);
            }
            if !enter_groups(doors) {
                failed.fail_at(1);
            }
            if let Some(cell) = cell {
                confine_process(cell, view, *user, *bounds, failed);
            }
            // By their paths, so that they are the cell's own; and as the task's user, to whom the
            // files belong then.
            if libc::chdir(directory.as_ptr()) < 0 {
                failed.fail_at(6);
            }
            let output = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW;
            let files: [(&CStr, i32); 3] =
                [(c"/dev/null", libc::O_RDONLY), (stdout, output), (stderr, output)];
            for (target, (path, flags)) in (0..).zip(files) {
                let file = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o644);
                // The worker has its own 0, 1 and 2, so this is above and dup2 clears CLOEXEC.
                if file < 0 || libc::dup2(file, target) < 0 {
                    failed.fail_at(7);
                }
            }
            if libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) < 0 {
                failed.fail_at(7);
            }
            if !cell.as_ref().is_none_or(|cell| cell.refuse_calls()) {
                failed.fail_at(5);
            }
            image.execute_program();
            failed.fail_at(8)
        }
    }
}

/// Confines the new process to the jail of a VM's tasks, as one of these tasks.
///
/// # Safety
///
/// Only a new process may call this.
#[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
unsafe fn confine_process(
    cell: &JailCell,
    view: &MountView,
    user: Option<u32>,
    bounds: ProgramBounds,
    failed: &FailedStep,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        if !cell.enter_namespaces(view) {
            failed.fail_at(2);
        }
        if let Err(step) = view.make_view() {
            failed.fail_at(AFTER_STEPS + step);
        }
        if !cell.take_root() {
            failed.fail_at(3);
        }
        if !cell.set_limits(bounds) {
            failed.fail_at(4);
        }
        if !JailCell::become_user(user) {
            failed.fail_at(5);
        }
    }
}

/// The control groups and the jail that a new process enters before it runs its program.
#[derive(Debug)]
pub struct ProcessGroups {
    /// Files to which the new (single-threaded) process writes `0`, meaning itself.
    ///
    /// Version 1 gets `tasks` and not `cgroup.procs`: a thread that moves only itself takes no
    /// lock against all the forks and exits of the machine.
    pub(crate) files: Vec<OwnedFd>,
    /// Control group of version 2 in which the process is started (`CLONE_INTO_CGROUP`); `None` under version 1.
    pub(crate) born_in: Option<OwnedFd>,
    /// Namespaces and confinement of the tasks of a VM; `None` if they are not jailed.
    pub(crate) cell: Option<Arc<JailCell>>,
}
