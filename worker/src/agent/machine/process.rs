//! The process of an attempt, and what its program says of itself.

use std::{fmt::Debug, io, time::Duration};

use dormouse_tasks::progress::{Clock, Progress, ProgressReader};

use crate::{
    agent::{report::explain_error, watch::watch_end},
    process::{self, ChildProcess, ProcessEnd},
};

/// The process of an attempt, or the parent of all its processes.
pub trait TaskProcess: Debug + Send + Sync + 'static {
    /// Number of the process on this host.
    fn pid(&self) -> i32;

    /// Kills the process with all that it has made.
    ///
    /// # Errors
    /// The kernel refuses.
    fn kill(&self) -> process::Result<()>;

    /// How the process ended, if it has.
    ///
    /// # Errors
    /// The kernel does not say.
    fn try_wait(&self) -> process::Result<Option<ProcessEnd>>;

    /// How the process ended; `None` if it has not within `limit`. Blocks for as long.
    ///
    /// # Errors
    /// The kernel does not say.
    fn wait(&self, limit: Duration) -> process::Result<Option<ProcessEnd>>;

    /// Calls `ended` once the process has ended, which is then still to be waited for.
    ///
    /// # Errors
    /// Out of descriptors.
    fn watch(&self, ended: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Asks the program to stand still, which it does when it would run next.
    ///
    /// # Errors
    /// In words, why it can't be asked.
    fn ask_to_stop(&self) -> Result<(), String>;

    /// Lets the program go on.
    ///
    /// # Errors
    /// In words, why it can't.
    fn resume(&self) -> Result<(), String>;

    /// Memory of the process, in bytes; `None` where the kernel does not say.
    fn resident_bytes(&self) -> Option<u64>;

    /// CPU time of the process alone, in nanoseconds; 0 where the kernel does not say.
    fn cpu_ns(&self) -> u64;
}

impl TaskProcess for ChildProcess {
    fn pid(&self) -> i32 {
        Self::pid(self)
    }

    fn kill(&self) -> process::Result<()> {
        Self::kill_all(self)
    }

    fn try_wait(&self) -> process::Result<Option<ProcessEnd>> {
        Self::try_wait(self)
    }

    fn wait(&self, limit: Duration) -> process::Result<Option<ProcessEnd>> {
        Self::wait_end(self, limit)
    }

    fn watch(&self, ended: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        watch_end(self, ended)
    }

    fn ask_to_stop(&self) -> Result<(), String> {
        process::ask_to_stop(Self::pid(self)).map_err(|e| explain_error(&e))
    }

    fn resume(&self) -> Result<(), String> {
        process::resume_process(Self::pid(self)).map_err(|e| explain_error(&e))
    }

    fn resident_bytes(&self) -> Option<u64> {
        process::resident_bytes(Self::pid(self)).ok()
    }

    fn cpu_ns(&self) -> u64 {
        process::cpu_ns(Self::pid(self)).unwrap_or(0)
    }
}

/// The page on which a program says how far it is.
pub trait ProgressPage: Debug + Send + Sync + 'static {
    /// What the program says now; `None` if the page can't be read.
    fn progress(&self) -> Option<Progress>;

    /// CPU time of the program's work and of what others did in its process; `None` if the page can't be read.
    fn clock(&self) -> Option<Clock>;

    /// CPU time that each of a job's processes has worked; `None` if the page does not say that of so many.
    fn work(&self, processes: usize) -> Option<Vec<Duration>>;
}

impl ProgressPage for ProgressReader {
    fn progress(&self) -> Option<Progress> {
        self.read().ok()
    }

    fn clock(&self) -> Option<Clock> {
        Self::clock(self).ok()
    }

    fn work(&self, processes: usize) -> Option<Vec<Duration>> {
        Self::work(self, processes).ok()
    }
}
