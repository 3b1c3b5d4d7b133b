//! Progress of a run, for observers.

use dormouse_engine::RunCounts;
use dormouse_units::{Money, Time};
use tokio::time::Instant;

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Emulated time of the run so far.
    pub now: Time,
    /// True once all workers were ready and the run has begun.
    pub begun: bool,
    /// Number of tasks in the run.
    pub tasks: u32,
    /// Number of ended tasks, whether finished or failed.
    pub completed: u32,
    /// Number of tasks on a VM.
    pub running: u32,
    /// Number of VMs that exist.
    pub vms: u32,
    /// Number of workers that are connected or expected back.
    pub workers: u32,
    /// Number of workers that the run waits for before it begins.
    pub workers_wanted: u32,
    /// Workers that a resumed run waits for before it continues; `None`: it does not wait. Meanwhile only tasks and VMs of workers
    /// that are back count as running.
    pub awaited: Option<AwaitedWorkers>,
    /// Money owed so far.
    pub cost: Money,
    /// Counts of the run's events.
    pub counts: RunCounts,
    /// True if the run is over.
    pub over: bool,
}

/// Workers that a resumed run waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwaitedWorkers {
    /// Number of workers that are back.
    pub back: u32,
    /// Number of workers that the run had.
    pub of: u32,
}

/// Progress of a run, and the instant at which it was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedProgress {
    pub(crate) progress: RunProgress,
    pub(crate) at: Instant,
}
