//! Tasks that end by themselves.

use dormouse_proto::v1::{TaskFailed, TaskFinished, report};

use super::{
    attempt::{Attempt, Key, Phase},
    owner::Owner,
};
use crate::{
    agent::{
        launch::is_silent,
        report::{explain, report, task},
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
            Phase::Dumping { .. } => return,
            Phase::Dying => {
                // How it died is known; this reaps it.
                if matches!(process.try_wait(), Ok(None)) {
                    return;
                }
                attempt.phase = Phase::Gone;
                self.slot_is_free(key);
                self.settle_stop(key);
                return;
            }
            Phase::Gone => return,
            Phase::Waiting { .. } | Phase::Launching | Phase::Running | Phase::Held { .. } => {}
        }
        let ended = match process.try_wait() {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => return self.fail_attempt(key, explain(&error)),
        };
        self.conclude(key, ended);
    }

    /// A process has ended by itself: what came of its task.
    pub(crate) fn conclude(&mut self, key: Key, ended: Ended) {
        let said = self.attempt(key).map(|a| (is_silent(&a.order), a.name.clone()));
        let Some((silent, name)) = said else { return };
        if silent && ended == Ended::Exited(0) {
            return self.finish(key, true, String::new());
        }
        match verdict(&self.host, &name, ended) {
            Ok((verified, result)) => self.finish(key, verified, result),
            Err(why) => self.fail_attempt(key, why),
        }
    }

    fn finish(&mut self, key: Key, verified: bool, result: String) {
        let Some((cpu_us, _)) = self.take_out(key) else { return };
        self.host.report(report(report::Report::TaskFinished(TaskFinished {
            task: task(self.id, key.0.get(), key.1.get()),
            verified,
            cpu_us,
            result,
        })));
        self.report_credits();
    }

    /// The attempt is over and its work is not done.
    pub(crate) fn fail_attempt(&mut self, key: Key, why: String) {
        let Some((cpu_us, _)) = self.take_out(key) else { return };
        self.host.report(report(report::Report::TaskFailed(TaskFailed {
            task: task(self.id, key.0.get(), key.1.get()),
            why,
            cpu_us,
        })));
        self.report_credits();
    }

    /// Takes an attempt whose process is gone out of the books, with its directory; its CPU time
    /// and what was left of it.
    pub(crate) fn take_out(&mut self, key: Key) -> Option<(u64, Attempt)> {
        self.pass();
        self.machine.leave(key.0, key.1);
        let attempt = self.remove(key)?;
        let cpu_us = if attempt.process.is_some() { self.cpu_us(&attempt) } else { 0 };
        self.refresh(attempt.cpu);
        let ours = self.host.places.release(self.host.workspace(), &attempt.name, key.0, key.1);
        let finished = attempt.stop.is_none() && attempt.wrong.is_none();
        if ours
            && finished
            && let Err(error) = self.host.store().remove_task(&attempt.name)
        {
            // Removed at the end of the run at the latest.
            tracing::warn!(why = explain(&error), "checkpoints of {} are left", attempt.name);
        }
        Some((cpu_us, attempt))
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
