//! Attempts that end, and what is said of it.

use std::time::Duration;

use dormouse_proto::v1::{
    JobAccount, Ledger, TaskFailed, TaskFinished, report, task_finished::Due,
};
use dormouse_tasks::answer::reckoned;
use dormouse_units::Span;
use dormouse_vm::life::{End, Event, Key};
use dormouse_worker::agent::in_process::refused;

use super::{
    agenda::Work,
    attempt::{Attempt, Process},
    launches::micros,
    owner::Owner,
};
use crate::worker::uplink::Uplink;

/// How long a killed process takes to be seen gone, usually.
const DEATH: Duration = Duration::from_millis(2);

impl<U: Uplink> Owner<U> {
    /// A process comes to its own end.
    pub(super) fn exit(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        if attempt.process != Process::Alive {
            if attempt.process == Process::Still {
                // Held by CRIU, or for its checkpoint, it does nothing.
                self.agenda.add(DEATH, Work::Exit(key));
            }
            return;
        }
        let has_answer = !attempt.fails;
        attempt.process = Process::Exited { has_answer };
        if has_answer {
            self.host.witness().work_done(key.0, key.1);
        }
        self.host.shared.process_is_gone(key);
        self.happen(Event::ProcessEnded(key));
    }

    /// Kills the process of an attempt, which then leaves its seat.
    pub(super) fn kill(&mut self, key: Key) {
        self.leave_model(key);
        let takes = self.chance.time(DEATH);
        let frozen = self.lives.is_frozen();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.process = Process::Killed;
        attempt.is_killed = true;
        // It never does anything of its own again.
        self.host.shared.process_is_gone(key);
        self.agenda.add(takes, Work::Death(key));
        if frozen {
            self.agenda.freeze();
        }
        self.say_credits();
    }

    /// Sees whether a killed process is gone.
    pub(super) fn reap(&mut self, key: Key) {
        if self.seen(key).is_some_and(|attempt| attempt.process != Process::Alive) {
            self.happen(Event::Gone(key));
        }
    }

    /// Keeps the answer of a program that has ended.
    pub(super) fn answer(&mut self, key: Key) -> Result<(), String> {
        let Some(attempt) = self.attempt(key) else { return Ok(()) };
        let program = attempt.order.program.as_ref();
        let answer = program.and_then(|program| reckoned(&program.args, 1));
        attempt.result = answer.and_then(|answer| serde_json::to_string(&answer).ok());
        match attempt.result {
            Some(_) => Ok(()),
            None => Err("it left no result".to_owned()),
        }
    }

    /// Sees how a process ended, if it has.
    pub(super) fn judge(&mut self, key: Key) {
        let Some(attempt) = self.seen(key) else { return };
        let result = match attempt.process {
            Process::Exited { has_answer: true } => self.answer(key),
            Process::Exited { has_answer: false } => Err("it ended with status 1".to_owned()),
            Process::Killed => Err("it was killed by signal 9".to_owned()),
            Process::None | Process::Alive | Process::Still => return,
        };
        self.happen(Event::Exited(key, result));
    }

    /// Handles an attempt whose work is done, perhaps before its time.
    pub(super) fn await_time(&mut self, key: Key) {
        self.pass();
        if let Some(is_early) = self.is_job_early(key) {
            if !is_early {
                self.happen(Event::TimeHasCome(key));
            }
            return;
        }
        let progress = self.model.progress(key.0, key.1);
        if progress.is_none_or(|progress| progress.finished.is_some()) {
            self.happen(Event::TimeHasCome(key));
        }
    }

    /// Takes an attempt that is over out of the books, and reports how it ended.
    pub(super) fn end(&mut self, key: Key, end: End) {
        self.leave_model(key);
        let Some(attempt) = self.seen(key) else { return };
        if end == End::Refused {
            let why = "its slot is still occupied by a task that was killed long ago".to_owned();
            self.host.report(refused(&attempt.order, why));
            return self.remove(key);
        }
        let ledger = self.ledger_of(attempt, end == End::Finished);
        let worked = self.worked_us(attempt);
        let keeps = attempt.is_killed || matches!(end, End::Stopped(_) | End::Silent);
        let account = self.job_account(attempt);
        match end {
            End::Finished => self.say_finished(attempt, ledger, account),
            End::Failed { why, image } => {
                self.say_failed(key, (why, image), ledger, account);
                self.forget_job(key);
            }
            End::Stopped(kept) => {
                self.say_stopped(key, self.kept_of(attempt, kept), Some(ledger), account);
            }
            End::Refused | End::Silent => {}
        }
        self.share_us += worked;
        self.host.images.release(key, keeps);
        self.remove(key);
        self.say_credits();
    }

    /// Reports the end of an attempt of which something is still there.
    pub(super) fn say_end(&mut self, key: Key, end: End) {
        self.leave_model(key);
        let Some(attempt) = self.seen(key) else { return };
        let ledger = self.ledger_of(attempt, false);
        let account = self.job_account(attempt);
        match end {
            End::Failed { why, image } => self.say_failed(key, (why, image), ledger, account),
            End::Stopped(kept) => {
                self.say_stopped(key, self.kept_of(attempt, kept), Some(ledger), account);
            }
            End::Finished | End::Refused | End::Silent => {}
        }
    }

    fn remove(&mut self, key: Key) {
        self.agenda.forget(key);
        self.attempts.retain(|attempt| attempt.key != key);
    }

    fn say_finished(&self, attempt: &Attempt, ledger: Ledger, job: Option<JobAccount>) {
        let due = match &attempt.job {
            None => attempt.after.map(Span::as_micros).map(Due::EmulatedAfterUs),
            Some(job) => job.due.map(|due| Due::EmulatedAtUs(due.at_us)),
        };
        self.say(report::Report::TaskFinished(TaskFinished {
            task: self.task(attempt.key),
            verified: true,
            real_cpu_us: ledger.real_charged_us,
            result: attempt.result.clone(),
            ledger: job.is_none().then_some(ledger),
            job,
            due,
            own: None,
        }));
    }

    fn say_failed(
        &self,
        key: Key,
        (why, could_not_restore): (String, bool),
        ledger: Ledger,
        job: Option<JobAccount>,
    ) {
        self.say(report::Report::TaskFailed(TaskFailed {
            task: self.task(key),
            why,
            real_cpu_us: ledger.real_charged_us,
            ledger: job.is_none().then_some(ledger),
            could_not_restore,
            job,
            done_ppm: self.done(key).get(),
            own: None,
        }));
    }

    /// What an attempt that ends now was promised and got.
    fn ledger_of(&self, attempt: &Attempt, finished: bool) -> Ledger {
        let frozen = attempt.frozen + self.frozen_at.map_or(Duration::ZERO, |at| at.elapsed());
        let took = attempt.asked.elapsed().saturating_sub(frozen);
        let standing = attempt.standing.map_or(Duration::ZERO, |at| at.elapsed());
        let worked = self.worked_us(attempt);
        Ledger {
            real_promised_us: micros(attempt.promised.filter(|_| finished).unwrap_or(took)),
            real_took_us: micros(took),
            real_promised_work_us: worked,
            real_worked_us: worked,
            real_charged_us: worked,
            real_stood_us: micros(attempt.stood + standing),
            missed_checkpoints: attempt.missed_checkpoints,
            real_whole_work_us: attempt.order.real_cpu_us,
            ..Ledger::default()
        }
    }
}
