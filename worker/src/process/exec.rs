//! Code of a new process between clone and exec, whatever its program: the process shares this one's memory until then,
//! so that only system calls on data that was prepared before are allowed.

use std::{
    ffi::{CString, OsStr},
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::ffi::OsStrExt,
    },
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::sys::signal::{SigSet, SigmaskHow};

use super::ProcessGroups;

/// A program's path, arguments and environment in the form that execve(2) needs.
pub(super) struct ExecImage {
    path: *const libc::c_char,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    /// The strings of arguments and environment that the pointers refer to.
    _strings: (Vec<CString>, Vec<CString>),
}

// SAFETY: the pointers are to strings of its own, which stay where they are.
#[expect(unsafe_code, reason = "pointers to strings that go with it")]
unsafe impl Send for ExecImage {}

impl ExecImage {
    /// Makes the image of a program with its arguments and environment; the error says which of the strings contains a NUL byte.
    pub(super) fn new<'a>(
        path: &'a OsStr,
        args: impl IntoIterator<Item = &'a OsStr>,
        env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> Result<Self, &'static str> {
        let c = |bytes: &[u8], what| CString::new(bytes).map_err(|_| what);
        let mut argv = vec![c(path.as_bytes(), "its path")?];
        for arg in args {
            argv.push(c(arg.as_bytes(), "an argument")?);
        }
        let mut envp = Vec::new();
        for (name, value) in env {
            envp.push(c(&[name.as_bytes(), b"=", value.as_bytes()].concat(), "its environment")?);
        }
        let pointers = |strings: &[CString]| {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        let (argv_pointers, envp_pointers) = (pointers(&argv), pointers(&envp));
        let path = argv_pointers.first().copied().unwrap_or(ptr::null());
        Ok(Self { path, argv: argv_pointers, envp: envp_pointers, _strings: (argv, envp) })
    }

    /// Executes the program with no signal blocked; the caller must have removed all signal handlers. Returns only if
    /// that fails. A name without a slash is looked up on `PATH`.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    pub(super) unsafe fn execute_program(&self) {
        // SAFETY: async-signal-safe, on strings that live in the memory of the waiting thread.
        unsafe {
            // Rust ignores SIGPIPE, which exec would hand on.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            if libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) == 0 {
                libc::execvpe(self.path, self.argv.as_ptr(), self.envp.as_ptr());
            }
        }
    }
}

/// Returns the files by which a new process enters the groups of `entry`: none if the process is started in the groups.
///
/// They need not be kept open: a new process has descriptors of its own.
pub(super) fn group_files(entry: &ProcessGroups) -> Vec<RawFd> {
    match entry.born_in {
        Some(_) => Vec::new(),
        None => entry.files.iter().map(AsRawFd::as_raw_fd).collect(),
    }
}

/// Moves this process into control groups, which are given by their open files.
///
/// # Safety
/// In a new process only.
#[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
pub(super) unsafe fn enter_groups(doors: &[RawFd]) -> bool {
    // SAFETY: one byte to descriptors that are this process's own.
    doors.iter().all(|door| unsafe { libc::write(*door, c"0".as_ptr().cast(), 1) == 1 })
}

/// Adds to the arguments of a clone that the process is started in the group of `entry`, if the kernel can do that.
pub(super) fn born_in(entry: &ProcessGroups, args: &mut libc::clone_args) {
    if let Some(group) = &entry.born_in {
        args.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
        args.flags |= CLONE_INTO_CGROUP;
    }
}

/// `CLONE_INTO_CGROUP` (linux/sched.h); the libc crate has it as a signed, shortened number.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Memory in which a new process records the step that failed.
#[derive(Default)]
pub(super) struct FailedStep(AtomicU64);

impl FailedStep {
    /// Records that the new process failed at step `step`, with its `errno`, and ends the process.
    ///
    /// # Safety
    /// In a new process only.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    pub(super) unsafe fn fail_at(&self, step: u32) -> ! {
        // SAFETY: the waiting thread's errno is this process's, too, and ending at once is safe.
        unsafe {
            let errno = (*libc::__errno_location()).unsigned_abs();
            self.0.store(u64::from(step + 1) << 32 | u64::from(errno), Ordering::Release);
            libc::_exit(127)
        }
    }

    /// Returns the step at which the new process failed, and the error; `None`: it didn't fail.
    pub(super) fn failed_step<'a>(&self, steps: &[&'a str]) -> Option<(&'a str, io::Error)> {
        let failed = self.0.load(Ordering::Acquire);
        let step = usize::try_from(failed >> 32).ok()?.checked_sub(1)?;
        let errno = i32::try_from(failed & u64::from(u32::MAX)).unwrap_or(0);
        let step = steps.get(step).copied().unwrap_or("an unknown step");
        Some((step, io::Error::from_raw_os_error(errno)))
    }
}

/// Blocks all signals in this thread until dropped: no handler may run in a thread whose thread-local data a new
/// process uses.
pub(super) struct BlockedSignals(SigSet);

impl BlockedSignals {
    pub(super) fn block_all() -> io::Result<Self> {
        Ok(Self(SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // Setting a mask that was in force before cannot fail.
        let _ = self.0.thread_set_mask();
    }
}
