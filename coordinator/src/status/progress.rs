//! How a run goes, for whoever looks on.

use dormouse_engine::RunCounts;
use dormouse_units::{Money, Time};
use tokio::time::Instant;

/// How a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Emulated time of the run so far.
    pub now: Time,
    /// All workers were there, and it has begun.
    pub begun: bool,
    /// Tasks in all.
    pub tasks: u32,
    /// Tasks that are over, well or not.
    pub completed: u32,
    /// Tasks on a VM.
    pub running: u32,
    /// Number of VMs that are alive.
    pub vms: u32,
    /// Workers connected, or expected back.
    pub workers: u32,
    /// Workers it waits for before it begins.
    pub workers_wanted: u32,
    /// The workers that it waits for before it goes on, of a run that was stopped or whose coordinator
    /// was killed. Of tasks and VMs only those of workers that are back are running.
    pub awaited: Option<AwaitedWorkers>,
    /// What is owed so far.
    pub cost: Money,
    /// How often what happened.
    pub counts: RunCounts,
    /// It is over.
    pub over: bool,
}

/// How many workers of a run that goes on are back, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitedWorkers {
    /// Number of workers that are back.
    pub back: u32,
    /// Number of workers that the run had.
    pub of: u32,
}

/// How a run went a moment ago.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedProgress {
    pub(crate) progress: RunProgress,
    pub(crate) at: Instant,
}
