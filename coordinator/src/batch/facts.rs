//! What a live run of parallel jobs shows beside its schedule. Folded over its steps.

use std::collections::BTreeMap;

use dormouse_batch::{Event, JobId};
use dormouse_units::Ppm;

use super::{BatchStep, JobLedger, MachineReport, ProcessUse};
use crate::facts::HostLoad;

/// What was measured. Times are real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchFacts {
    /// Share of a host core that a processor is; zero if the machine never came.
    pub core: Ppm,
    /// From the command to start a job to its being at work, slots that were waited for included.
    pub starts_us: Vec<u64>,
    /// From the command to swap a job's priorities to their being swapped.
    pub swaps_us: Vec<u64>,
    /// What each migration came to.
    pub moves: Vec<MoveFact>,
    /// What of a job's work was lost by each kill.
    pub kills: Vec<(JobId, Ppm)>,
    /// What the processes of every job got.
    pub uses: Vec<(JobId, ProcessUse)>,
    /// What every job that came to its end was due and got in its last start.
    pub ledgers: Vec<(JobId, JobLedger)>,
    /// How much later than it was heard of each job ended; below zero: earlier.
    pub late_us: BTreeMap<JobId, i64>,
    /// Jobs whose answer was right.
    pub verified: u64,
    /// Jobs whose answer was wrong.
    pub wrong: Vec<JobId>,
    /// Jobs that are reported to have ended, of which the scheduler has not heard yet, and whether
    /// their answers were right.
    pub reported: BTreeMap<JobId, bool>,
    /// What the host did besides, as it said last.
    pub load: Option<HostLoad>,
}

/// What a migration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveFact {
    /// Whose.
    pub job: JobId,
    /// What of its work came along.
    pub done: Ppm,
    /// Why nothing did; empty if it did.
    pub lost: String,
    /// From the command to its running again.
    pub took_us: u64,
    /// What the dump took of that.
    pub dump_us: u64,
    /// What the restore took of that.
    pub restore_us: u64,
    /// Size of the checkpoint, in bytes.
    pub bytes: u64,
}

impl BatchFacts {
    /// Takes in a step.
    pub fn see(&mut self, step: &BatchStep) {
        match &step.report {
            Some(MachineReport::Started { took_us, .. }) => self.starts_us.push(*took_us),
            Some(MachineReport::Promoted { took_us, .. }) => self.swaps_us.push(*took_us),
            Some(MachineReport::Moved {
                job,
                done,
                lost,
                took_us,
                dump_us,
                restore_us,
                bytes,
                ..
            }) => self.moves.push(MoveFact {
                job: *job,
                done: *done,
                lost: lost.clone(),
                took_us: *took_us,
                dump_us: *dump_us,
                restore_us: *restore_us,
                bytes: *bytes,
            }),
            Some(MachineReport::Killed { job, done, uses, .. }) => {
                self.kills.push((*job, *done));
                self.uses.extend(uses.iter().map(|u| (*job, *u)));
            }
            Some(MachineReport::Finished { job, verified, uses, ledger, late_us, .. }) => {
                self.ledgers.extend(ledger.map(|ledger| (*job, ledger)));
                self.uses.extend(uses.iter().map(|u| (*job, *u)));
                self.reported.insert(*job, *verified);
                self.late_us.insert(*job, *late_us);
            }
            _ => {}
        }
        // The scheduler does not hear of one that had been killed meanwhile: it runs again.
        for event in &step.events {
            let &Event::Finished { job, .. } = event else { continue };
            match self.reported.remove(&job) {
                Some(true) => self.verified += 1,
                Some(false) => self.wrong.push(job),
                None => {}
            }
        }
    }
}
