//! A `/proc` for a task that CRIU restores: its PID namespace is there only once CRIU has made it.

use std::{
    ffi::c_void,
    fs::File,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    thread,
    time::Duration,
};

use nix::sched::{CloneFlags, setns};

use super::{
    ProcessEnd,
    clone::{CloneOutcome, clone_and_wait},
    exec::FailedStep,
};
use crate::jail::{NewView, processes_view};

struct OwnProcBirth {
    mounts: OwnedFd,
    view: NewView,
    failed: FailedStep,
}

/// Mounts a `/proc` for the PID namespace of process `pid`, in the mount namespace of that process. The process is the first of its
/// PID namespace, and does nothing yet.
///
/// # Errors
///
/// The kernel refuses a step.
pub(crate) fn mount_processes(pid: i32, deadline: Duration) -> io::Result<()> {
    let open = |space: &str| File::open(format!("/proc/{pid}/ns/{space}")).map(OwnedFd::from);
    let (pids, mounts) = (open("pid")?, open("mnt")?);
    let birth = OwnProcBirth { mounts, view: processes_view()?, failed: FailedStep::default() };
    // Only the children of a thread that has entered a PID namespace are in it.
    thread::scope(|scope| {
        let enter = move || {
            setns(&pids, CloneFlags::CLONE_NEWPID)?;
            mount_proc(birth, deadline)
        };
        let thread = thread::Builder::new().name("processes".to_owned());
        let thread = thread.spawn_scoped(scope, enter)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    })
}

#[expect(unsafe_code, reason = "a process that makes system calls")]
fn mount_proc(birth: OwnProcBirth, deadline: Duration) -> io::Result<()> {
    // SAFETY: `run` makes only system calls, on what was prepared before, and never returns.
    match unsafe { clone_and_wait(0, None, OwnProcBirth::run, birth, deadline) }? {
        CloneOutcome::Past(task, birth) => {
            // The number that it has in the namespace must be free again for CRIU.
            let ended = task.wait_end(deadline).map_err(io::Error::other)?;
            let words = birth.view.step_words();
            let steps = STEPS.into_iter().chain(words.iter().map(String::as_str));
            match birth.failed.failed_step(&steps.collect::<Vec<_>>()) {
                Some((step, source)) => {
                    Err(io::Error::new(source.kind(), format!("{step} failed: {source}")))
                }
                None if ended == Some(ProcessEnd::Exited(0)) => Ok(()),
                None => Err(io::ErrorKind::TimedOut.into()),
            }
        }
        CloneOutcome::Late => Err(io::ErrorKind::TimedOut.into()),
    }
}

const STEPS: [&str; 1] = ["entering the mounts of the task"];

impl OwnProcBirth {
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` that was given to the clone.
        let Self { mounts, view, failed } = unsafe { &*birth.cast::<Self>() };
        // SAFETY: system calls on a descriptor and strings prepared before.
        unsafe {
            if libc::setns(mounts.as_raw_fd(), libc::CLONE_NEWNS) < 0 {
                failed.fail_at(0);
            }
            if let Err(step) = view.take_steps() {
                failed.fail_at(1 + step);
            }
            libc::_exit(0)
        }
    }
}
