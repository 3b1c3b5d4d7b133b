//! Attempts that end by themselves, and what is left of any that has ended.

use std::time::Duration;

use dormouse_proto::v1::{TaskFailed, TaskFinished, report, task_finished::Due};
use dormouse_units::Tier;
use dormouse_vm::ideal::Change;
use dormouse_vm::life::{End, Event, Seat};

use tokio::time::Instant;

use super::Owner;
use crate::{
    agent::{
        host::limit,
        launch::is_silent,
        life::refused,
        report::{Key, explain, report, task},
        test_fault,
        vm::{
            account::Account,
            attempt::{Attempt, Nature},
            clock::CommandStamp,
            job,
        },
    },
    process::Ended,
};

impl Owner {
    /// Sees whether a killed process is gone. How it died is known; this reaps it.
    pub(crate) fn reap(&mut self, key: Key) {
        let process = self.seen(key).and_then(|attempt| attempt.process.as_ref());
        if process.is_some_and(|process| !matches!(process.try_wait(), Ok(None))) {
            self.happen(Event::Gone(key));
        }
    }

    /// Sees how a process ended, if it has.
    pub(crate) fn judge(&mut self, key: Key) {
        let Some(attempt) = self.seen(key) else { return };
        if attempt.own_end.is_some() {
            // It has been reaped. It is over once what it left is kept, which may have been heard of during a dump.
            if attempt.answer.is_some() {
                self.happen(Event::Exited(key, Ok(())));
            }
            return;
        }
        let Some(process) = attempt.process.clone() else { return };
        let came = match process.try_wait() {
            Ok(Some(ended)) if self.own_has_ended(key, ended) => None,
            Ok(Some(ended)) => self.came_of(key, ended),
            Ok(None) => None,
            Err(error) => Some(Err(explain(&error))),
        };
        if let Some(came) = came {
            let result = self.judged(key, came);
            self.happen(Event::Exited(key, result));
        }
    }

    /// Keeps the answer of an attempt, if it gave one.
    pub(crate) fn judged(
        &mut self,
        key: Key,
        came: Result<(bool, Option<String>), String>,
    ) -> Result<(), String> {
        let answer = came?;
        if let Some(attempt) = self.attempt(key) {
            attempt.answer = Some(answer);
        }
        Ok(())
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
        let work = self.work_of(attempt);
        let verdict = self.machine.verdict(&attempt.name, ended, attempt.killed_before, work);
        Some(verdict.map(|(verified, result)| (verified, Some(test_fault::forges_trail(result)))))
    }

    /// Handles an attempt whose work is done, perhaps before its time.
    ///
    /// It had a slice or two more than it was promised by now, and its vCPUs are its own for as
    /// long as it was promised.
    pub(crate) fn await_time(&mut self, key: Key) {
        self.pass();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.exempt.clear();
        let is_early = match attempt.nature {
            Nature::Task(_) => {
                self.model.progress(key.0, key.1).is_some_and(|p| p.finished.is_none())
            }
            Nature::Job(_) => self.is_job_early(key),
        };
        if !is_early {
            self.happen(Event::TimeHasCome(key));
        }
    }

    /// Takes an attempt that is over out of the books, and reports how it ended.
    pub(crate) fn end(&mut self, key: Key, seats: &[Seat], end: End) {
        if end == End::Refused {
            self.leave_model(key);
            if let Some(attempt) = self.remove(key) {
                let after = Duration::as_millis(&limit::KILL);
                let why =
                    format!("its slot is still occupied by a task that was killed {after} ms ago");
                self.context.report(refused(&attempt.order, why));
            }
            return;
        }
        let Some((of, attempt)) = self.take_out(key, seats, &end) else { return };
        match end {
            End::Finished => self.say_finished(attempt, of),
            End::Failed { why, image } => {
                self.forget_job(&attempt);
                self.say_failed(key, (why, image), attempt.done_ppm(), of);
            }
            End::Stopped(kept) => self.say_stopped(key, Self::kept_of(&attempt, kept), of),
            End::Refused | End::Silent => {}
        }
        self.report_credits();
        self.turn_meters();
    }

    /// Reports the end of an attempt of which something is still there.
    pub(crate) fn say_end(&mut self, key: Key, end: End) {
        self.leave_model(key);
        let Some(attempt) = self.seen(key) else { return };
        let of = self.account_of(attempt, false);
        match end {
            End::Failed { why, image } => {
                self.say_failed(key, (why, image), attempt.done_ppm(), of);
            }
            End::Stopped(kept) => self.say_stopped(key, Self::kept_of(attempt, kept), of),
            End::Finished | End::Refused | End::Silent => {}
        }
    }

    fn say_finished(&self, attempt: Attempt, of: Account) {
        let due = match &attempt.nature {
            Nature::Task(promise) => promise.after.map(|it| Due::EmulatedAfterUs(it.as_micros())),
            Nature::Job(job) => job.due.map(|due| Due::EmulatedAtUs(due.at_us)),
        };
        let (verified, result) = attempt.answer.unwrap_or_default();
        let own = attempt.own_end;
        self.context.report(report(report::Report::TaskFinished(TaskFinished {
            task: task(self.id, attempt.key),
            verified,
            real_cpu_us: of.cpu_us,
            result,
            ledger: of.ledger,
            job: of.job,
            due,
            own,
        })));
    }

    fn say_failed(
        &self,
        key: Key,
        (why, could_not_restore): (String, bool),
        done_ppm: u32,
        of: Account,
    ) {
        self.context.report(report(report::Report::TaskFailed(TaskFailed {
            task: task(self.id, key),
            why,
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
            could_not_restore,
            job: of.job,
            done_ppm,
            own: None,
        })));
    }

    /// A job that has failed wants nothing more of its vCPUs: what its neighbours are promised is
    /// reckoned without it.
    pub(crate) fn forget_job(&mut self, attempt: &Attempt) {
        if attempt.job().is_some() {
            let at = self.pace.decided(&CommandStamp::now());
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
    /// and what was left of it.
    fn take_out(&mut self, key: Key, seats: &[Seat], end: &End) -> Option<(Account, Attempt)> {
        self.leave_model(key);
        self.vacate(key, seats);
        let attempt = self.seen(key)?;
        let account = self.account_of(attempt, *end == End::Finished);
        let share = self.share_of(attempt);
        self.share.promised += share.promised;
        self.share.received += share.received;
        let attempt = self.remove(key)?;
        self.refresh(attempt.cpu());
        if attempt.job().is_some() {
            self.turn_meters();
            // Who comes next owes nothing.
            self.pay(Instant::now());
        }
        let keeps = attempt.is_killed || matches!(end, End::Stopped(_) | End::Silent);
        self.context.machine.release(&attempt.name, key, keeps && attempt.job().is_none());
        Some((account, attempt))
    }

    /// The slots of an attempt whose processes are gone are free, and as they were.
    pub(crate) fn vacate(&mut self, key: Key, seats: &[Seat]) {
        let charged = job::charged_ns(&*self.machine, seats);
        if let Some(attempt) = self.attempt(key) {
            attempt.exempt.clear();
            if let Some(job) = attempt.job_mut().filter(|_| !seats.is_empty()) {
                job.ledger.leave(charged);
            }
        }
        for seat in seats.iter().filter(|seat| seat.tier == Tier::Background) {
            let demoted = self.machine.demote(seat.vcpu, seat.slot);
            self.note(demoted);
        }
        for seat in seats {
            let let_go = self.machine.let_go(seat.vcpu, seat.slot);
            self.note(let_go);
        }
    }

    /// Takes an attempt out of the books.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Attempt> {
        let place = self.attempts.iter().position(|a| a.key == key)?;
        let mut attempt = self.attempts.remove(place);
        attempt.exempt.clear();
        self.remains.forget(key);
        Some(attempt)
    }
}
