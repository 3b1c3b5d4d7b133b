//! Measurements of the parallel jobs of a live run.

use std::collections::BTreeMap;

use dormouse_model::{
    Effect, Event, JobStartAccount, JobStartLedger, Notice, ProcessCpuUse, Report, Step,
};
use dormouse_units::{Attempt, Ppm, TaskId};

/// Measurements of parallel jobs. Times are real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// Time from each command to start a job until the job had started, the wait for its slots
    /// included.
    pub starts_us: Vec<u64>,
    /// Time from each command to swap a job's priorities until they were swapped.
    pub swaps_us: Vec<u64>,
    /// Outcome of each migration.
    pub moves: Vec<JobMove>,
    /// Part of a job's work that each kill lost.
    pub kills: Vec<(TaskId, Ppm)>,
    /// CPU use of the processes of every job.
    pub uses: Vec<(TaskId, ProcessCpuUse)>,
    /// Account of the CPU time of every job that ended, since the job's last start.
    pub ledgers: Vec<(TaskId, JobStartLedger)>,
    /// Real microseconds by which each job ended later than reported; negative if the job ended earlier.
    pub late_us: BTreeMap<TaskId, i64>,
    /// Number of jobs that ended with a right answer.
    pub verified: u64,
    /// Number of jobs that ended with a right answer by their workers' word alone.
    pub reported: u64,
    /// Jobs that ended with a right answer and without an account of their CPU time.
    pub unjudged: Vec<TaskId>,
    /// Jobs that gave a wrong answer and were started again; a job is listed once for each wrong answer.
    pub wrong: Vec<TaskId>,
    /// The last reported account of a job's CPU time; the end of its attempt is reported next.
    account: Option<(TaskId, Attempt, Box<JobStartAccount>)>,
}

/// Outcome of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobMove {
    /// The job that moved.
    pub job: TaskId,
    /// Part of the job's work that was moved along.
    pub done: Ppm,
    /// Reason why the migration lost all of the job's work; empty if work was moved along.
    pub lost: String,
    /// Real microseconds from the command to migrate until the job ran again.
    pub took_us: u64,
    /// Real microseconds that CRIU took to dump the job.
    pub dump_us: u64,
    /// Real microseconds that CRIU took to restore the job.
    pub restore_us: u64,
    /// Size of the checkpoint that was moved, in bytes.
    pub bytes: u64,
}

impl JobFacts {
    /// Adds the measurements in the next step of a run of parallel jobs.
    pub fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event {
            self.see_report(report, step.effects.contains(&Effect::Stale));
        }
        let finished = |n: &&Notice| matches!(n, Notice::TaskFinished { .. });
        self.verified += step.notices.iter().filter(finished).count() as u64;
    }

    /// Adds a worker's report; `stale` if the report is about an attempt that is over.
    fn see_report(&mut self, report: &Report, stale: bool) {
        match report {
            Report::TaskStarted { real_took_us, .. } => self.starts_us.push(*real_took_us),
            Report::TaskPromoted { real_took_us, .. } => self.swaps_us.push(*real_took_us),
            Report::TaskMoved {
                task,
                done,
                lost,
                real_took_us,
                real_dump_us,
                real_restore_us,
                bytes,
                ..
            } => self.moves.push(JobMove {
                job: *task,
                done: *done,
                lost: lost.clone(),
                took_us: *real_took_us,
                dump_us: *real_dump_us,
                restore_us: *real_restore_us,
                bytes: bytes.get(),
            }),
            Report::JobAccount { task, attempt, account, .. } => {
                self.account = Some((*task, *attempt, account.clone()));
            }
            Report::TaskStopped { task, attempt, .. } => {
                if let Some(account) = self.account_of(*task, *attempt) {
                    self.kills.push((*task, account.done));
                    self.uses.extend(account.uses.into_iter().map(|of| (*task, of)));
                }
            }
            Report::TaskFailed { task, attempt, .. } => {
                if let Some(account) = self.account_of(*task, *attempt) {
                    self.uses.extend(account.uses.into_iter().map(|of| (*task, of)));
                }
            }
            Report::TaskFinished { task, attempt, verified, reported, .. } => {
                let is_right = *verified && !stale;
                self.reported += u64::from(is_right && *reported);
                let known = self.ledgers.len();
                if let Some(account) = self.account_of(*task, *attempt) {
                    self.uses.extend(account.uses.into_iter().map(|of| (*task, of)));
                    if !stale {
                        self.ledgers.extend(account.ledger.map(|ledger| (*task, ledger)));
                        self.late_us.insert(*task, account.real_late_us);
                    }
                }
                if is_right && self.ledgers.len() == known {
                    self.unjudged.push(*task);
                }
                if !verified && !stale {
                    self.wrong.push(*task);
                }
            }
            _ => {}
        }
    }

    fn account_of(&mut self, task: TaskId, attempt: Attempt) -> Option<Box<JobStartAccount>> {
        let (_, _, account) = self.account.take_if(|of| (of.0, of.1) == (task, attempt))?;
        Some(account)
    }
}
