//! Stopping tasks, and changing how they run.

use dormouse_proto::v1::{JobAccount, Ledger, SetMode, SetSupply, StopTask, TaskStopped, report};
use dormouse_units::Ppm;
use dormouse_vm::{
    ideal::Change,
    life::{Event, Kept, Key},
};
use dormouse_worker::agent::in_process::CommandStamp;

use super::{
    attempt::Attempt,
    owner::Owner,
    starts::{key_of, mode},
};
use crate::worker::uplink::Uplink;

impl<U: Uplink> Owner<U> {
    pub(super) fn obey_stop(&mut self, stop: &StopTask, asked: &CommandStamp) {
        let key = key_of(stop.task);
        if self.job(key).is_some() {
            let at = self.pace.decided(asked);
            self.pace.change(at, Change::Kill(key));
        }
        self.happen(Event::Stop { key, keep: stop.keep });
    }

    /// The part of an attempt's work that is kept, and the checkpoint that keeps it.
    pub(super) fn kept_of(&self, attempt: &Attempt, kept: Kept) -> (u32, Option<u32>) {
        match (kept, &attempt.pending) {
            (Kept::Checkpoint(number), Some(pending)) => (pending.image.done.get(), Some(number)),
            (Kept::Begun, _) if attempt.job.is_none() => (attempt.from.get(), None),
            _ => (self.done(attempt.key).get(), None),
        }
    }

    /// With what of its work is done, and the checkpoint that keeps that.
    pub(super) fn say_stopped(
        &self,
        key: Key,
        (done_ppm, checkpoint): (u32, Option<u32>),
        ledger: Option<Ledger>,
        job: Option<JobAccount>,
    ) {
        self.say(report::Report::TaskStopped(TaskStopped {
            task: self.task(key),
            done_ppm,
            checkpoint,
            real_cpu_us: ledger.as_ref().map_or(0, |ledger| ledger.real_charged_us),
            ledger: ledger.filter(|_| job.is_none()),
            job,
        }));
    }

    pub(super) fn set_mode(&mut self, set: SetMode) {
        let now = self.pass();
        let key = key_of(set.task);
        if self.model.set_mode(now, key.0, key.1, mode(set.mode())) {
            self.say_credits();
        }
    }

    /// Gives a vCPU another share of a core, and those on it another promise.
    pub(super) fn set_supply(&mut self, set: SetSupply, asked: &CommandStamp) {
        let now = self.pass();
        let since = if self.lives.is_frozen() { now } else { self.clock.decided(asked) };
        let share = Ppm::new(set.share_ppm);
        self.model.set_supply_since(now.max(since), since, set.vcpu, share);
        self.say_credits();
    }
}
