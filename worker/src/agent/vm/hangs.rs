//! Tasks that hang: found, reported and killed.

use std::time::{Duration, Instant};

use dormouse_proto::v1::{TaskFailed, report};
use dormouse_tasks::progress::Progress;

use super::{attempt::Nature, job, liveness::Hang, owner::Owner};
use crate::agent::{
    host::limit,
    report::{Key, report, task},
};

impl Owner {
    /// Whether a task gets on whose process is there, by what it says of itself.
    pub(crate) fn see_alive(&mut self, key: Key, progress: Option<&Progress>) -> Result<(), Hang> {
        let Some(attempt) = self.seen(key) else { return Ok(()) };
        let mut liveness = attempt.liveness;
        let seen = if attempt.standing.is_some() {
            liveness.pause();
            Ok(())
        } else {
            let (now, beat) = (Instant::now(), progress.map(|progress| progress.heartbeat));
            let ppm = match &attempt.nature {
                Nature::Task(_) => self.share_promised(attempt),
                Nature::Job(job) => self.job_share(key, job, now),
            };
            let seats = self.seats_of(key);
            liveness.see(now, beat, ppm, || Some(job::charged_ns(&self.groups, &seats)))
        };
        if let Some(attempt) = self.attempt(key) {
            attempt.liveness = liveness;
        }
        seen
    }

    /// Kills a task that hangs. Once it is gone it has failed, and can be started elsewhere.
    pub(crate) fn give_up(&mut self, key: Key, hang: &Hang) {
        let id = self.id;
        let Some(attempt) = self.attempt(key) else { return };
        tracing::warn!(vm = id, task = %attempt.name, why = %hang, "a task is killed");
        attempt.wrong = Some(hang.to_string());
        self.kill(key);
        if let Some(attempt) = self.attempt(key) {
            attempt.look = Some(Instant::now() + limit::KILL);
        }
    }

    /// One that the kernel does not let die, as with a disk that does not answer, has failed all
    /// the same. Its slot stays occupied.
    pub(crate) fn outlives_its_kill(&mut self, key: Key) {
        self.pass();
        let id = self.id;
        let Some(attempt) = self.seen(key) else { return };
        let of = self.account_of(attempt, false);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.look = None;
        let Some(why) = attempt.wrong.clone().filter(|_| !attempt.reported) else { return };
        attempt.reported = true;
        let after = Duration::as_millis(&limit::KILL);
        self.host.report(report(report::Report::TaskFailed(TaskFailed {
            task: task(id, key),
            why: format!("{why}; its process is still there {after} ms after it was killed"),
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
        })));
    }
}
