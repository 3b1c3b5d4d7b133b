//! Attempts that end by themselves, and what is left of any that has ended.

use std::time::Instant;

use dormouse_proto::v1::{
    JobAccount, Ledger, TaskFailed, TaskFinished, report, task_finished::Due,
};
use dormouse_tasks::ideal::Change;
use dormouse_units::Tier;

use super::{
    attempt::{Attempt, Nature, Phase},
    clock::Asked,
    job,
    owner::Owner,
};
use crate::{
    agent::{
        launch::is_silent,
        report::{Key, explain, report, task},
        verdict::verdict,
    },
    process::Ended,
};

/// What an attempt was promised and got, in the words of the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) cpu_us: u64,
    /// Of a task of one process.
    pub(crate) ledger: Option<Ledger>,
    /// Of a parallel job.
    pub(crate) job: Option<JobAccount>,
}

impl Owner {
    /// The kernel says that the process has ended.
    pub(crate) fn process_ended(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        let Some(process) = attempt.process.clone() else { return };
        match attempt.phase {
            // The end of the dump comes first.
            Phase::Dumping => return,
            Phase::Dying => {
                // How it died is known; this reaps it.
                if matches!(process.try_wait(), Ok(None)) {
                    return;
                }
                return self.is_gone(key);
            }
            Phase::Gone | Phase::Early { .. } => return,
            Phase::Waiting { .. } | Phase::Launching | Phase::Running => {}
        }
        let ended = match process.try_wait() {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => return self.fail_attempt(key, explain(&error)),
        };
        self.conclude(key, ended);
    }

    /// A killed attempt has no process any more.
    pub(crate) fn is_gone(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        attempt.phase = Phase::Gone;
        let cpu = attempt.cpu();
        self.vacate(key);
        self.refresh(cpu);
        self.launch_ready();
        self.settle_stop(key);
    }

    /// A process has ended by itself: what came of its task.
    pub(crate) fn conclude(&mut self, key: Key, ended: Ended) {
        match self.came_of(key, ended) {
            Some(Ok((verified, result))) => self.work_is_done(key, verified, result),
            Some(Err(why)) => self.fail_attempt(key, why),
            None => {}
        }
    }

    /// Whether its answer is right, and its result, if its program gives one; why there is neither.
    pub(crate) fn came_of(
        &self,
        key: Key,
        ended: Ended,
    ) -> Option<Result<(bool, Option<String>), String>> {
        let attempt = self.seen(key)?;
        if is_silent(&attempt.order) && ended == Ended::Exited(0) {
            return Some(Ok((true, None)));
        }
        let verdict = verdict(&self.host, &attempt.name, ended, &self.groups);
        Some(verdict.map(|(verified, result)| (verified, Some(result))))
    }

    /// Its work is done: it has finished, or will have when its time has come.
    ///
    /// It had a slice or two more than it was promised by now, and its vCPUs are its own for as
    /// long as it was promised.
    fn work_is_done(&mut self, key: Key, verified: bool, result: Option<String>) {
        let now = self.pass();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.exempt.clear();
        let is_early = match attempt.nature {
            Nature::Task(_) => {
                // It came too late for a checkpoint, and stands still for it all the same.
                if attempt.dump_asked || attempt.due_again {
                    (attempt.dump_asked, attempt.due_again) = (false, false);
                    self.miss_checkpoint(now, key);
                }
                self.model.progress(key.0, key.1).is_some_and(|p| p.finished.is_none())
            }
            Nature::Job(_) => self.is_job_early(key),
        };
        let Some(attempt) = self.attempt(key) else { return };
        if is_early {
            attempt.phase = Phase::Early { verified, result };
        } else {
            self.say_finished(key, verified, result);
        }
    }

    pub(crate) fn say_finished(&mut self, key: Key, verified: bool, result: Option<String>) {
        let Some((of, attempt)) = self.take_out(key, true) else { return };
        let due = match &attempt.nature {
            Nature::Task(promise) => promise.after.map(|it| Due::EmulatedAfterUs(it.as_micros())),
            Nature::Job(job) => job.due.map(|due| Due::EmulatedAtUs(due.at_us)),
        };
        self.host.report(report(report::Report::TaskFinished(TaskFinished {
            task: task(self.id, key),
            verified,
            real_cpu_us: of.cpu_us,
            result,
            ledger: of.ledger,
            job: of.job,
            due,
        })));
        self.report_credits();
        self.launch_ready();
    }

    /// The attempt is over and its work is not done.
    pub(crate) fn fail_attempt(&mut self, key: Key, why: String) {
        let Some((of, attempt)) = self.take_out(key, false) else { return };
        self.forget_job(&attempt);
        self.host.report(report(report::Report::TaskFailed(TaskFailed {
            task: task(self.id, key),
            why,
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
        })));
        self.report_credits();
        self.launch_ready();
    }

    /// A job that has failed wants nothing more of its vCPUs: what its neighbours are promised is
    /// reckoned without it.
    pub(crate) fn forget_job(&mut self, attempt: &Attempt) {
        if attempt.job().is_some() {
            let at = self.pace.decided(&Asked::now());
            self.pace.change(at, Change::Kill(attempt.key));
        }
    }

    /// What an attempt that ends now was promised and got. Time must have been passed.
    pub(crate) fn account_of(&self, attempt: &Attempt, finished: bool) -> Account {
        match &attempt.nature {
            Nature::Task(promise) => {
                let ledger = self.ledger_of(attempt, promise, finished);
                Account { cpu_us: ledger.real_charged_us, ledger: Some(ledger), job: None }
            }
            Nature::Job(job) => {
                let account = self.job_account(job);
                let cpu_us = account.uses.iter().map(|of| of.real_cpu_us).sum();
                Account { cpu_us, ledger: None, job: Some(account) }
            }
        }
    }

    /// Takes an attempt whose process is gone out of the books, with its directory; its account
    /// and what was left of it. Its end is to be reported, and its slots may have been waited for.
    pub(crate) fn take_out(&mut self, key: Key, finished: bool) -> Option<(Account, Attempt)> {
        self.leave_model(key);
        self.vacate(key);
        let attempt = self.seen(key)?;
        let (account, share) = (self.account_of(attempt, finished), self.share_of(attempt));
        self.share.promised += share.promised;
        self.share.received += share.received;
        let attempt = self.remove(key)?;
        self.refresh(attempt.cpu());
        if attempt.job().is_some() {
            self.turn_meters();
            // Who comes next owes nothing.
            self.pay(Instant::now());
        }
        let keeps = attempt.stop.is_some() || attempt.wrong.is_some();
        self.host.release(&attempt.name, key, keeps && attempt.job().is_none());
        Some((account, attempt))
    }

    /// The slots of an attempt whose processes are gone are free, and as they were.
    pub(crate) fn vacate(&mut self, key: Key) {
        let seats = self.seats_of(key);
        let charged = job::charged_ns(&self.groups, &seats);
        if let Some(attempt) = self.attempt(key) {
            attempt.exempt.clear();
            if let Some(job) = attempt.job_mut().filter(|_| !seats.is_empty()) {
                job.ledger.leave(charged);
            }
        }
        for seat in seats.iter().filter(|seat| seat.tier == Tier::Background) {
            let demoted = self.groups.demote(seat.vcpu, seat.slot);
            self.note(demoted);
        }
        self.slots.leave(key);
    }

    /// Takes an attempt out of the books.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Attempt> {
        let place = self.attempts.iter().position(|a| a.key == key)?;
        let mut attempt = self.attempts.remove(place);
        attempt.exempt.clear();
        self.slots.leave(key);
        Some(attempt)
    }
}
