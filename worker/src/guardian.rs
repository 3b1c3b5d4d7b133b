//! The guardian: the process that ensures that nothing outlives the worker.

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{ForkResult, Pid, fork, getpid, getppid, setsid},
};

use crate::cgroup::{CgroupHierarchy, InstanceName, destroy_instance};
use crate::process::{ProcessError, ProcessIdentity, Result, pidfd, threads};

/// The time for which the guardian (the process that cleans up after a worker) tries to remove the tree of control groups; the
/// worker's next start removes the rest.
const DEADLINE: Duration = Duration::from_secs(10);

/// A small child process that waits for the end of this one, and then kills every process in this worker's control
/// groups, frozen and restored ones included, and removes the groups.
///
/// The guardian watches a pidfd, which no descriptor leaked into another process can keep open. It leads a session of its own, so
/// that a signal to the process group of the worker's terminal does not reach it. Dropping the handle leaves the guardian running.
#[derive(Debug)]
pub struct GroupGuardian {
    identity: ProcessIdentity,
}

impl GroupGuardian {
    /// Starts the process that cleans up after this one (its guardian), whose tree of control groups will be called `name`.
    ///
    /// Must be called before any thread is started: it forks and continues in the child.
    ///
    /// # Errors
    ///
    /// There are threads already, the number of threads can't be found out, or the fork fails.
    #[expect(unsafe_code, reason = "fork is unsafe in general")]
    pub fn start_guardian(hierarchy: &CgroupHierarchy, name: InstanceName) -> Result<Self> {
        let threads = threads::count_threads()
            .map_err(|source| ProcessError::Proc { path: threads::LIST.into(), source })?;
        if threads != 1 {
            return Err(ProcessError::TooLate { threads });
        }
        let worker = getpid();
        let guard = |step| move |e: nix::Error| ProcessError::Guardian { step, source: e.into() };
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { fork() }.map_err(guard("fork"))? {
            ForkResult::Child => {
                let code = i32::from(keep_watch(worker, hierarchy, name).is_err());
                // Not the worker's exit: its handlers and buffers are not the guardian's to run.
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(code) }
            }
            ForkResult::Parent { child } => {
                Ok(Self { identity: ProcessIdentity::of_process(child.as_raw())? })
            }
        }
    }

    /// Returns the identity of the guardian, the process that cleans up after this one.
    #[must_use]
    pub fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// Returns whether the guardian, the process that cleans up after this one, still runs. If it was killed, an abrupt end of the
    /// worker leaves its tasks running until the next worker starts.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.identity.is_alive()
    }
}

fn keep_watch(worker: Pid, hierarchy: &CgroupHierarchy, name: InstanceName) -> io::Result<()> {
    setsid()?;
    let watched = pidfd::open(worker.as_raw());
    close_everything_but(watched.as_ref().ok().map(AsRawFd::as_raw_fd))?;
    // If the worker died before it was watched, the PID may be another's by now.
    if let Ok(watched) = watched
        && getppid() == worker
    {
        let mut fds = [PollFd::new(watched.as_fd(), PollFlags::POLLIN)];
        while !matches!(poll(&mut fds, PollTimeout::NONE), Ok(1..)) {}
    }
    destroy_instance(hierarchy, name, DEADLINE).map_err(io::Error::other)?;
    Ok(())
}

/// Closes all descriptors of the clean-up process (guardian) except `kept`: a guardian that kept the worker's output open would
/// keep its readers waiting.
fn close_everything_but(kept: Option<i32>) -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for target in 0..3 {
        dup_onto(null.as_raw_fd(), target)?;
    }
    match kept {
        Some(kept) => {
            close_range(3, kept.unsigned_abs().saturating_sub(1))?;
            close_range(kept.unsigned_abs() + 1, u32::MAX)
        }
        None => close_range(3, u32::MAX),
    }?;
    // It was closed just now.
    std::mem::forget(null);
    Ok(())
}

#[expect(unsafe_code, reason = "the standard streams have no owned descriptors to hand to nix")]
fn dup_onto(from: i32, target: i32) -> io::Result<()> {
    // SAFETY: replaces the process's own standard stream; no pointer is involved.
    if unsafe { libc::dup2(from, target) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[expect(unsafe_code, reason = "nix has no close_range")]
fn close_range(first: u32, last: u32) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: the only code that runs on in this process uses none of these descriptors.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
