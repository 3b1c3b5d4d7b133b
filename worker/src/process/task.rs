//! A running task as seen by the worker, freshly started or restored alike.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::wait::{Id, WaitPidFlag, WaitStatus, waitid},
};

use super::{Error, Result, pidfd};

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It returned this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// A child process of the worker, held by its pidfd. Dropping it neither kills nor reaps.
#[derive(Debug)]
pub struct Task {
    pid: i32,
    pidfd: OwnedFd,
}

impl Task {
    pub(crate) fn new(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// Takes charge of a child that something else made, such as CRIU.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn adopt(pid: i32) -> Result<Self> {
        let pidfd = pidfd::open(pid).map_err(|source| Error::Process {
            action: "take charge of",
            pid,
            source,
        })?;
        Ok(Self { pid, pidfd })
    }

    /// Its PID in the worker's namespace.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for its end and reaps it: `None` where it still runs after `deadline`.
    ///
    /// # Errors
    /// Where it is no child of this process or was reaped already.
    pub fn wait(&self, deadline: Duration) -> Result<Option<Ended>> {
        let fail = |source: nix::Error| Error::Process {
            action: "wait for",
            pid: self.pid,
            source: io::Error::from(source),
        };
        // Rounded up: a wait of less than a millisecond is a wait.
        let millis = deadline.as_nanos().div_ceil(1_000_000);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::Error::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(e) => return Err(fail(e)),
        }
        self.try_wait()
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// Where it is no child of this process or was reaped already.
    pub fn try_wait(&self) -> Result<Option<Ended>> {
        let id = Id::PIDFd(self.pidfd.as_fd());
        match waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Exited(_, status)) => Ok(Some(Ended::Exited(status))),
            Ok(WaitStatus::Signaled(_, signal, _)) => Ok(Some(Ended::Killed(signal as i32))),
            Ok(_) => Ok(None),
            Err(source) => {
                Err(Error::Process { action: "wait for", pid: self.pid, source: source.into() })
            }
        }
    }

    /// Kills it, and with it all of its PID namespace. A process that has ended is no error.
    ///
    /// In a frozen version 1 group the signal waits for the thaw: use
    /// [`Vm::kill_all`](crate::cgroup::Vm::kill_all) there.
    ///
    /// # Errors
    /// Where the worker may not.
    pub fn kill(&self) -> Result<()> {
        match pidfd::send_signal(self.pidfd.as_fd(), libc::SIGKILL) {
            Err(source) if source.raw_os_error() != Some(libc::ESRCH) => {
                Err(Error::Process { action: "kill", pid: self.pid, source })
            }
            _ => Ok(()),
        }
    }
}

/// The pidfd, which becomes readable when the task has ended: for an event loop.
impl AsFd for Task {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
