//! The process of an attempt, and what its program reports.

use std::{fmt::Debug, io, time::Duration};

use dormouse_tasks::progress::{Clock, Progress, ProgressReader};

use crate::{
    agent::{report::explain_error, watch::watch_end},
    process::{self, ChildProcess, ProcessEnd, ProcessIdentity},
};

/// The process of an attempt, or the parent of its processes.
pub trait TaskProcess: Debug + Send + Sync + 'static {
    /// Returns the process's PID on this host.
    fn pid(&self) -> i32;

    /// Kills the process and all its descendants.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    fn kill(&self) -> process::Result<()>;

    /// Returns how the process ended; `None`: the process still runs.
    ///
    /// # Errors
    ///
    /// The kernel doesn't report it.
    fn try_wait(&self) -> process::Result<Option<ProcessEnd>>;

    /// Returns whether the process still runs. One that has ended must still be reaped.
    fn is_alive(&self) -> bool;

    /// Waits for the end of the process; `None` if it still runs after `limit`. Blocks.
    ///
    /// # Errors
    ///
    /// The kernel doesn't report it.
    fn wait(&self, limit: Duration) -> process::Result<Option<ProcessEnd>>;

    /// Calls `ended` once the process has ended; the process must still be reaped.
    ///
    /// # Errors
    ///
    /// There are no file descriptors left.
    fn watch(&self, ended: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Asks the program to stop; the program stops when it would run next.
    ///
    /// # Errors
    ///
    /// In words, why the program can't be asked.
    fn ask_to_stop(&self) -> Result<(), String>;

    /// Lets the program run on.
    ///
    /// # Errors
    ///
    /// In words, why the program can't run on.
    fn resume(&self) -> Result<(), String>;

    /// Returns the memory of the process in bytes; `None` if the kernel doesn't report it.
    fn resident_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the CPU time of the process alone, in nanoseconds; 0 if the kernel doesn't report it.
    fn cpu_ns(&self) -> u64 {
        0
    }
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

    fn is_alive(&self) -> bool {
        let process = ProcessIdentity::of_process(Self::pid(self));
        process.is_ok_and(|process| process.is_alive())
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

/// Page of shared memory on which a program reports its progress.
pub trait ProgressPage: Debug + Send + Sync + 'static {
    /// Returns what the program reports now; `None` if the page can't be read.
    fn progress(&self) -> Option<Progress>;

    /// Returns the CPU time of the program's work, and of foreign code in its process; `None` if the page can't be
    /// read.
    fn clock(&self) -> Option<Clock> {
        None
    }

    /// Returns the CPU time that each of a job's processes has worked; `None` if the page doesn't have this number of
    /// processes.
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
