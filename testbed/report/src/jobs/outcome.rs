//! Results of the parallel jobs of a run.

use dormouse_analysis::fidelity::{Consolidation, FidelityVerdict};
use dormouse_analysis::jobs::{JobFigures, JobsOfWindow};
use dormouse_analysis::{OutcomeTally, RunMode};
use dormouse_workload::Skipped;

use crate::output::LogHeader;
use dormouse_experiment::BatchSetup;

/// Results of the parallel jobs of a run.
#[derive(Debug)]
pub struct JobsOutcome<'a> {
    /// First line of the log.
    pub header: &'a LogHeader,
    /// The jobs' workload, scheduler and machine.
    pub batch: &'a BatchSetup,
    /// Figures of the jobs.
    pub figures: JobFigures,
    /// Jobs that the chart shows.
    pub drawn: JobsOfWindow,
    /// Digest of all decisions, in hexadecimal.
    pub decisions_sha256: String,
    /// Most jobs that were in the system at once.
    pub most_in_system: usize,
    /// Counts of the lines and jobs left out of the workload's log; `None` if the jobs do not come from a log.
    pub skipped: Option<Skipped>,
    /// Number of jobs whose answer was checked and right; zero in virtual time.
    pub verified: u64,
    /// Number of jobs whose success only their workers report.
    pub reported: u64,
    /// Number of jobs that did not end.
    pub failed: u64,
    /// Reason given by the user who ended the run early; `None` if nobody did.
    pub cancelled: Option<String>,
    /// Number of checkpoints that were kept.
    pub checkpoints: u32,
    /// Number of starts from a checkpoint.
    pub restores: u32,
    /// Number of decisions that were rejected.
    pub rejected: u32,
    /// Verdict on the emulation; `None` in virtual time.
    pub fidelity: Option<FidelityVerdict>,
    /// Costs of two jobs on one processor; `None` in virtual time.
    pub consolidation: Option<Consolidation>,
}

impl JobsOutcome<'_> {
    /// Number of processors of the machine.
    #[must_use]
    pub const fn machine(&self) -> u32 {
        self.batch.workload.processors
    }

    /// Number of jobs by outcome; jobs that did not end count as given up.
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
