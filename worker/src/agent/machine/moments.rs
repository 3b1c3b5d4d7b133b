//! The moments of a dump at which the agent decides: whether it may begin, and how much of the program's work the
//! checkpoint counts.

use std::sync::Arc;

use dormouse_tasks::progress::Progress;
use dormouse_units::{Attempt, Ppm};

use crate::{
    agent::gate::{GatedWork, VmGate},
    store::SavedProgress,
};

/// The moments of one dump at which the agent decides.
#[derive(Debug)]
pub struct DumpMoments {
    gate: Arc<VmGate>,
    counts: CountedWork,
    /// Keeps the VM from freezing until CRIU is through: CRIU's code in a frozen program would not answer.
    pub(super) inside: Option<GatedWork>,
    pub(super) is_overtaken: bool,
}

/// The work that a checkpoint counts.
#[derive(Clone, Copy, Debug)]
pub enum CountedWork {
    /// The work that the program reports, or `known` if that is given; at most `due` if that is given.
    Reported {
        /// The attempt at the task.
        attempt: Attempt,
        /// Part of the task's work at which the checkpoint was planned; `None`: all work done counts.
        due: Option<Ppm>,
        /// Part of the task's work that the program has done, as the worker computes it.
        known: Option<Ppm>,
    },
    /// The work that the worker computed when it requested the dump.
    Computed(SavedProgress),
}

/// Error: the program isn't dumped, because its VM freezes or is destroyed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("its VM freezes")]
pub struct OvertakenDump;

impl DumpMoments {
    /// Prepares the dump of a program on a VM.
    #[must_use]
    pub fn new(gate: &Arc<VmGate>, counts: CountedWork) -> Self {
        Self { gate: Arc::clone(gate), counts, inside: None, is_overtaken: false }
    }

    /// Begins the dump.
    ///
    /// # Errors
    ///
    /// The VM freezes or is destroyed.
    pub fn enter(&mut self) -> Result<(), OvertakenDump> {
        self.inside = self.gate.enter_dump();
        self.is_overtaken = self.inside.is_none();
        if self.is_overtaken { Err(OvertakenDump) } else { Ok(()) }
    }

    /// Returns the progress that the checkpoint counts, of a program that reports `progress` while it is stopped.
    #[must_use]
    pub fn count(&self, progress: &Progress) -> SavedProgress {
        match self.counts {
            CountedWork::Computed(saved) => saved,
            CountedWork::Reported { attempt, due, known } => {
                let reported = u32::try_from(progress.ppm).unwrap_or(0);
                let done = known.map_or(reported, Ppm::get);
                SavedProgress {
                    attempt: attempt.get(),
                    // What it has beyond what was due is its wait for CRIU's turn.
                    progress_ppm: due.map_or(done, |due| due.get().min(done)),
                    cpu_ns: u64::try_from(progress.cpu.as_nanos()).unwrap_or(u64::MAX),
                }
            }
        }
    }
}
