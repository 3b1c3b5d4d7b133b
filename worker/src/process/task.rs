//! A running task as seen by the worker, freshly started or restored alike.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};

use super::{ProcessError, Result, pidfd};

/// Way in which a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The program exited with the given status.
    Exited(i32),
    /// The signal of the given number killed the program.
    Killed(i32),
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "it returned status {status}"),
            Self::Killed(signal) => write!(f, "signal {signal} killed it"),
        }
    }
}

/// Child process of the worker, held by its pidfd. Dropping the value neither kills nor reaps the process.
#[derive(Debug)]
pub struct ChildProcess {
    pid: i32,
    pidfd: OwnedFd,
}

impl ChildProcess {
    pub(crate) fn new(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// Takes over a child that other code made, such as CRIU.
    ///
    /// # Errors
    ///
    /// There is no such process.
    pub fn adopt_child(pid: i32) -> Result<Self> {
        let pidfd = pidfd::open(pid).map_err(|source| ProcessError::Process {
            action: "open a handle of",
            pid,
            source,
        })?;
        Ok(Self { pid, pidfd })
    }

    /// Returns the PID of the task in the worker's PID namespace.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for the end of the process and reaps it. Returns `None` if it still runs after `deadline`.
    ///
    /// # Errors
    ///
    /// The process is not a child of this process, or was reaped already.
    pub fn wait_end(&self, deadline: Duration) -> Result<Option<ProcessEnd>> {
        let fail = |source: nix::Error| ProcessError::Process {
            action: "wait for",
            pid: self.pid,
            source: io::Error::from(source),
        };
        let begun = Instant::now();
        loop {
            let left = deadline.saturating_sub(begun.elapsed());
            // Rounded up: a wait of less than a millisecond is a wait.
            let millis = left.as_nanos().div_ceil(1_000_000);
            let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) => return Ok(None),
                Err(nix::Error::EINTR) => {}
                Ok(_) => break,
                Err(e) => return Err(fail(e)),
            }
        }
        self.try_wait()
    }

    /// Reaps the process if it has ended, without waiting; `None` if it still runs.
    ///
    /// # Errors
    ///
    /// The process is not a child of this process, or was reaped already.
    pub fn try_wait(&self) -> Result<Option<ProcessEnd>> {
        let id = Id::PIDFd(self.pidfd.as_fd());
        match waitid(id, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            Ok(WaitStatus::Exited(_, status)) => Ok(Some(ProcessEnd::Exited(status))),
            Ok(WaitStatus::Signaled(_, signal, _)) => Ok(Some(ProcessEnd::Killed(signal as i32))),
            Ok(_) => Ok(None),
            Err(source) => Err(ProcessError::Process {
                action: "wait for",
                pid: self.pid,
                source: source.into(),
            }),
        }
    }

    /// Waits for the end of a process that is sure to end, and reaps it, unless other code does.
    pub(super) fn reap_ended(&self) {
        let id = || Id::PIDFd(self.pidfd.as_fd());
        while waitid(id(), WaitPidFlag::WEXITED) == Err(nix::Error::EINTR) {}
    }

    /// Kills the process, and with it all processes of its PID namespace. It is not an error if the process has ended.
    ///
    /// In a frozen group of version 1 the signal waits until the group is thawed. Use
    /// [`Vm::kill_all`](crate::cgroup::Vm::kill_all) there.
    ///
    /// # Errors
    ///
    /// The worker may not signal it.
    pub fn kill_all(&self) -> Result<()> {
        match pidfd::send_signal(self.pidfd.as_fd(), libc::SIGKILL) {
            Err(source) if source.raw_os_error() != Some(libc::ESRCH) => {
                Err(ProcessError::Process { action: "kill", pid: self.pid, source })
            }
            _ => Ok(()),
        }
    }
}

/// Gives the pidfd, which becomes readable when the task has ended: an event loop can wait for it.
impl AsFd for ChildProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Reaps a killed process in a separate thread, as the death of a frozen or throttled process takes long. `used`, which the process
/// may use until its death, is dropped afterwards.
pub(crate) fn reap_later<T: Send + 'static>(task: ChildProcess, used: T) {
    let used = ManuallyDrop::new(used);
    let reaping = thread::Builder::new().name("reaper".to_owned()).spawn(move || {
        task.reap_ended();
        drop(ManuallyDrop::into_inner(used));
    });
    if let Err(error) = reaping {
        // Rather lost than taken away from a process that may still use it.
        tracing::warn!(%error, "a killed process still exists at the worker's end");
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::thread::JoinHandleExt as _;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::{fs, thread};

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    static HANDLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handle(_: i32) {
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }

    fn wait_until(what: &str, mut seen: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !seen() {
            assert!(begun.elapsed() < SOON, "{what}");
            thread::yield_now();
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "a handler and a signal")]
    fn a_signal_does_not_end_a_wait() {
        let action = SigAction::new(SigHandler::Handler(handle), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler adds to an atomic only.
        unsafe { sigaction(Signal::SIGUSR2, &action) }.unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let task = ChildProcess::adopt_child(i32::try_from(child.id()).unwrap()).unwrap();
        let (say, said) = mpsc::channel();
        let waiter = thread::spawn(move || {
            say.send(nix::unistd::gettid()).unwrap();
            task.wait_end(SOON)
        });
        let stat = format!("/proc/self/task/{}/stat", said.recv().unwrap());
        wait_until("it does not wait", || fs::read_to_string(&stat).unwrap().contains(") S "));
        // SAFETY: the thread has not been joined.
        assert_eq!(unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGUSR2) }, 0);
        wait_until("the signal does not come", || HANDLED.load(Ordering::SeqCst) == 1);
        child.kill().unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), Some(ProcessEnd::Killed(9)));
        assert!(child.wait().is_err(), "it has been reaped");
    }
}
