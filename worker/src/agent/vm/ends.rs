//! Tasks that end by themselves.

use dormouse_proto::v1::{Ledger, TaskFailed, TaskFinished, report, task_finished::Due};

use super::{
    attempt::{Attempt, Phase},
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

impl Owner {
    /// The kernel says that the process has ended.
    pub(crate) fn process_ended(&mut self, key: Key) {
        let Some(attempt) = self.attempts.iter_mut().find(|a| a.key == key) else { return };
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
        self.slot_is_free(key);
        self.settle_stop(key);
    }

    /// A process has ended by itself: what came of its task.
    pub(crate) fn conclude(&mut self, key: Key, ended: Ended) {
        let said = self.attempt(key).map(|a| (is_silent(&a.order), a.name.clone()));
        let Some((silent, name)) = said else { return };
        if silent && ended == Ended::Exited(0) {
            return self.say_finished(key, true, None);
        }
        match verdict(&self.host, &name, ended, &self.groups) {
            Ok((verified, result)) => self.work_is_done(key, verified, Some(result)),
            Err(why) => self.fail_attempt(key, why),
        }
    }

    /// Its work is done: it has finished, or will have when its time has come.
    ///
    /// It had a slice or two more than it was promised by now, and its vCPU is its own for as long
    /// as it was promised.
    fn work_is_done(&mut self, key: Key, verified: bool, result: Option<String>) {
        let now = self.pass();
        let Some(attempt) = self.attempt(key) else { return };
        attempt.exempt = None;
        // It came too late for a checkpoint, and stands still for it all the same.
        if attempt.dump_asked || attempt.due_again {
            (attempt.dump_asked, attempt.due_again) = (false, false);
            self.miss_checkpoint(now, key);
        }
        let early = self.model.progress(key.0, key.1).is_some_and(|p| p.finished.is_none());
        let Some(attempt) = self.attempt(key) else { return };
        if early {
            attempt.phase = Phase::Early { verified, result };
        } else {
            self.say_finished(key, verified, result);
        }
    }

    pub(crate) fn say_finished(&mut self, key: Key, verified: bool, result: Option<String>) {
        let Some((ledger, attempt)) = self.take_out(key, true) else { return };
        self.host.report(report(report::Report::TaskFinished(TaskFinished {
            task: task(self.id, key),
            verified,
            real_cpu_us: ledger.real_charged_us,
            result,
            ledger: Some(ledger),
            job: None,
            due: attempt.after.map(|after| Due::EmulatedAfterUs(after.as_micros())),
        })));
        self.report_credits();
    }

    /// The attempt is over and its work is not done.
    pub(crate) fn fail_attempt(&mut self, key: Key, why: String) {
        let Some((ledger, _)) = self.take_out(key, false) else { return };
        self.host.report(report(report::Report::TaskFailed(TaskFailed {
            task: task(self.id, key),
            why,
            real_cpu_us: ledger.real_charged_us,
            ledger: Some(ledger),
        })));
        self.report_credits();
    }

    /// Takes an attempt whose process is gone out of the books, with its directory; its account
    /// and what was left of it.
    pub(crate) fn take_out(&mut self, key: Key, finished: bool) -> Option<(Ledger, Attempt)> {
        self.leave_model(key);
        let attempt = self.attempts.iter().find(|a| a.key == key)?;
        let (ledger, share) = (self.ledger_of(attempt, finished), self.share_of(attempt));
        self.share.promised += share.promised;
        self.share.received += share.received;
        let mut attempt = self.remove(key)?;
        attempt.exempt = None;
        self.refresh(attempt.cpu);
        let keeps = attempt.stop.is_some() || attempt.wrong.is_some();
        self.host.release(&attempt.name, key, keeps);
        Some((ledger, attempt))
    }

    /// Somebody may have waited for this one's slot.
    fn slot_is_free(&mut self, gone: Key) {
        let Some(attempt) = self.attempts.iter().find(|a| a.key == gone) else { return };
        let (cpu, slot) = (attempt.cpu, attempt.slot);
        self.refresh(cpu);
        let waiting = self
            .attempts
            .iter()
            .find(|a| a.cpu == cpu && a.slot == slot && matches!(a.phase, Phase::Waiting { .. }));
        if let Some(key) = waiting.map(|a| a.key) {
            self.launch_if_free(key);
        }
    }
}
