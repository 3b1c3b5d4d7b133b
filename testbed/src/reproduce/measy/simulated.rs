//! A simulation as one of many that are kept as they are made.

use dormouse_vm::Sharing;

use super::cell::{Cell, Outcome};
use super::workloads::Workload;
use crate::jobs::JobsError;
use crate::sweep::{Plans, Seeded, SweepError, digest_of};

/// A simulation of the evaluation on its workload.
#[derive(Debug)]
pub(super) struct Simulated<'a> {
    workload: &'a Workload,
    pub(super) cell: Cell,
    case: String,
    digest: String,
    sharing: Sharing,
    seed: u64,
}

impl<'a> Simulated<'a> {
    pub(super) fn of(cell: Cell, workload: &'a Workload, sharing: Sharing, seed: u64) -> Self {
        let case = cell.name();
        let digest = digest_of(&(&workload.digest, &case, cell.load, sharing, seed));
        Self { workload, cell, case, digest, sharing, seed }
    }
}

impl Seeded for Simulated<'_> {
    type Sample = Outcome;

    fn case(&self) -> &str {
        &self.case
    }

    fn digest(&self) -> &str {
        &self.digest
    }

    /// Its jobs are drawn by it, too.
    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn run(&self, seed: u64, _: &Plans) -> Result<Outcome, SweepError> {
        self.cell.run(self.workload, self.sharing, seed).map_err(|error| SweepError::Jobs {
            case: self.case.clone(),
            seed,
            source: Box::new(JobsError::Schedule(error.to_string())),
        })
    }
}
