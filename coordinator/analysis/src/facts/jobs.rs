//! What a live run shows of its parallel jobs beside their schedule.

use std::collections::BTreeMap;

use dormouse_model::{Effect, Event, JobAccount, JobLedger, Notice, ProcessUse, Report, Step};
use dormouse_units::{Attempt, Ppm, TaskId};

/// What was measured. Times are real microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// From the command to start a job to its being at work, slots that were waited for included.
    pub starts_us: Vec<u64>,
    /// From the command to swap a job's priorities to their being swapped.
    pub swaps_us: Vec<u64>,
    /// What each migration came to.
    pub moves: Vec<MoveFact>,
    /// What of a job's work was lost by each kill.
    pub kills: Vec<(TaskId, Ppm)>,
    /// What the processes of every job got.
    pub uses: Vec<(TaskId, ProcessUse)>,
    /// What every job that came to its end was due and got in its last start.
    pub ledgers: Vec<(TaskId, JobLedger)>,
    /// How much later than it was heard of each job ended; below zero: earlier.
    pub late_us: BTreeMap<TaskId, i64>,
    /// Jobs that ended well.
    pub verified: u64,
    /// Jobs that ended well by their workers' word alone.
    pub reported: u64,
    /// Jobs that ended well and of which no account says what they were due and got.
    pub unjudged: Vec<TaskId>,
    /// Jobs whose answer was wrong, each time it was: they were started again.
    pub wrong: Vec<TaskId>,
    /// The account that came last, of an attempt whose end is reported next.
    account: Option<(TaskId, Attempt, Box<JobAccount>)>,
}

/// What a migration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveFact {
    /// The job that moved.
    pub job: TaskId,
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

impl JobFacts {
    /// Takes in a step of a run of parallel jobs.
    pub fn see(&mut self, step: &Step) {
        if let Event::Machine { report, .. } = &step.event {
            self.see_report(report, step.effects.contains(&Effect::Stale));
        }
        let finished = |n: &&Notice| matches!(n, Notice::TaskFinished { .. });
        self.verified += step.notices.iter().filter(finished).count() as u64;
    }

    /// A report; `stale`: of a former life, of which nothing is heard: the job runs again.
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
            } => self.moves.push(MoveFact {
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

    fn account_of(&mut self, task: TaskId, attempt: Attempt) -> Option<Box<JobAccount>> {
        let (_, _, account) = self.account.take_if(|of| (of.0, of.1) == (task, attempt))?;
        Some(account)
    }
}
