//! What came of the parallel jobs of a run.

use dormouse_analysis::fidelity::{Consolidation, FidelityVerdict};
use dormouse_analysis::jobs::{JobFigures, JobsOfWindow};
use dormouse_analysis::{OutcomeTally, RunMode};
use dormouse_workload::Skipped;

use crate::output::Header;
use dormouse_experiment::Batch;

/// What came of them.
#[derive(Debug)]
pub struct JobsOutcome<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// What the jobs are, who schedules them and where.
    pub batch: &'a Batch,
    /// What it came to.
    pub figures: JobFigures,
    /// Where its jobs ran.
    pub drawn: JobsOfWindow,
    /// The digest of all decisions.
    pub decisions_sha256: String,
    /// Most jobs in the system at once.
    pub most_in_system: usize,
    /// What was left out of the log it ran.
    pub skipped: Option<Skipped>,
    /// Jobs whose answer was checked and right; nothing has one in virtual time.
    pub verified: u64,
    /// Jobs that ended well by their workers' word alone.
    pub reported: u64,
    /// Jobs that did not end.
    pub failed: u64,
    /// Why the run was ended before its time, if it was.
    pub cancelled: Option<String>,
    /// Checkpoints of jobs that were kept.
    pub checkpoints: u32,
    /// How often a job began with one.
    pub restores: u32,
    /// Number of decisions of their scheduler that were rejected.
    pub rejected: u32,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<FidelityVerdict>,
    /// What two jobs on one processor cost each other; `None` in virtual time.
    pub consolidation: Option<Consolidation>,
}

impl JobsOutcome<'_> {
    /// Processors of the machine.
    #[must_use]
    pub const fn machine(&self) -> u32 {
        self.batch.workload.processors
    }

    /// How many jobs ended in which way: those that did not end were given up.
    #[must_use]
    pub const fn outcomes(&self) -> OutcomeTally {
        let Self { verified, reported, failed: given_up, .. } = *self;
        let ended = self.figures.jobs();
        let completed = match self.header.mode {
            RunMode::Virtual => ended,
            RunMode::Live => 0,
        };
        let total = ended + given_up;
        OutcomeTally { total, completed, verified, reported, program_failed: 0, given_up }
    }
}
