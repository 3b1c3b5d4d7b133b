//! Finding tasks that hang, and giving them up.

use dormouse_tasks::progress::Progress;
use dormouse_vm::life::VmEvent;

use tokio::time::Instant;

use super::VmOwner;
use crate::agent::{
    report::Key,
    vm::{attempt::AttemptNature, job, liveness::HangWatch},
};

impl VmOwner {
    /// Checks that a task whose process exists makes progress, by its own reports.
    ///
    /// # Errors
    ///
    /// The task hangs.
    pub(crate) fn see_alive(
        &mut self,
        key: Key,
        progress: Option<&Progress>,
    ) -> Result<(), HangWatch> {
        let Some(attempt) = self.find_attempt(key) else { return Ok(()) };
        let mut liveness = attempt.liveness;
        // One that has ended beats no more, however long its check takes.
        let seen = if attempt.standing.is_some() || attempt.own_end.is_some() {
            liveness.pause_watch();
            Ok(())
        } else {
            let (now, beat) = (Instant::now(), progress.map(|progress| progress.heartbeat));
            let ppm = match &attempt.nature {
                AttemptNature::Task(_) => self.share_promised(attempt),
                AttemptNature::Job(job) => self.job_share(key, job, now),
            };
            let seats = self.seats_of(key);
            liveness.note_beat(now, beat, ppm, || Some(job::charged_ns(&*self.machine, &seats)))
        };
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.liveness = liveness;
        }
        seen
    }

    /// Gives up a task that hangs: once its process is gone, the task counts as failed and can be started elsewhere.
    pub(crate) fn give_up(&mut self, key: Key, hang: &HangWatch) {
        if let Some(attempt) = self.find_attempt(key) {
            tracing::warn!(vm = self.id, task = %attempt.name, why = %hang, "a task that hangs is killed");
        }
        self.apply_event(VmEvent::Hangs(key, hang.to_string()));
    }
}
