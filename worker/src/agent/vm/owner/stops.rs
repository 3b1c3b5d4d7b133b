//! Stopping tasks, and changing how they run.

use std::sync::Arc;

use dormouse_proto::v1::{SetMode, SetSupply, StopTask, TaskStopped, report};
use dormouse_units::{Ppm, Tier};
use dormouse_vm::ideal::Change;
use dormouse_vm::life::{Event, Kept};

use super::{Owner, starts::mode};
use crate::agent::{
    own,
    report::{Key, explain, key, report, task},
    vm::{account::Account, attempt::Attempt, clock::CommandStamp, last_save::Request},
};

impl Owner {
    pub(crate) fn obey_stop(&mut self, stop: StopTask, asked: &CommandStamp) {
        let key = key(stop.task);
        let mut keep = stop.keep;
        if keep && let Some(attempt) = self.seen(key) {
            // One that does not save its work on request leaves nothing to be kept.
            keep = self.context.keeps(&attempt.order)
                && (attempt.last_save.is_some() || own::is_kept_while_it_runs(&attempt.order));
            if self.put_off(key, Request::Stop(stop, *asked)).is_none() {
                return;
            }
        }
        if self.seen(key).is_some_and(|a| a.job().is_some()) {
            let at = self.pace.decided(asked);
            self.pace.change(at, Change::Kill(key));
        }
        self.happen(Event::Stop { key, keep });
    }

    /// Kills the process of an attempt, which then leaves its seat.
    pub(crate) fn kill(&mut self, key: Key) {
        self.leave_model(key);
        let machine = Arc::clone(&self.machine);
        let Some(attempt) = self.attempt(key) else { return };
        if let Some(job) = attempt.job_mut() {
            job.meter.stop(|rank| machine.rank_time(rank), &job.ranks);
        }
        if let Some(Err(error)) = attempt.process.as_ref().map(|process| process.kill()) {
            tracing::error!(why = explain(&error), "a task survives its kill");
        }
        if attempt.own.is_some()
            && let Some(slot) = attempt.promise().map(|promise| promise.slot)
        {
            // Where groups are of version 1 it dies only when it is not held.
            let _ = machine.let_go(attempt.cpu(), slot);
        }
        attempt.is_killed = true;
        attempt.look = None;
        let cpu = attempt.cpu();
        let has_ended = attempt.own_end.is_some();
        self.exempt(key);
        self.refresh(cpu);
        self.report_credits();
        if has_ended {
            // Its process is gone already, and nobody will say so again: what is left is its check.
            self.end_check(key);
            self.reap(key);
        }
    }

    /// Lets an attempt that ends get on: throttled, or in the background, it would do so late. Its
    /// work is done, or it does none with the signal pending; its neighbours keep their quota.
    pub(crate) fn exempt(&mut self, key: Key) {
        for seat in self.seats_of(key) {
            if seat.tier == Tier::Background {
                let boosted = self.machine.boost(seat.vcpu, seat.slot);
                self.note(boosted);
            }
            match Arc::clone(&self.machine).lift_quota(seat.vcpu, seat.slot) {
                Ok(lifted) => {
                    if let Some(attempt) = self.attempt(key) {
                        attempt.exempt.push(lifted);
                    }
                }
                Err(error) => self.fail(&error),
            }
        }
    }

    /// The attempt has ended, and that was reported.
    pub(crate) fn say_unknown(&self, key: Key) {
        self.say_stopped(key, (0, None), Account::default());
    }

    /// What is kept of the work of an attempt, and the checkpoint that keeps it.
    pub(crate) fn kept_of(attempt: &Attempt, kept: Kept) -> (u32, Option<u32>) {
        match (kept, &attempt.pending) {
            (Kept::Checkpoint(number), Some(pending)) => (pending.ppm, Some(number)),
            (Kept::Begun, _) if attempt.job().is_none() => (attempt.from_ppm, None),
            _ => (attempt.done_ppm(), None),
        }
    }

    /// With what of its work is done, and the checkpoint that keeps that.
    pub(crate) fn say_stopped(
        &self,
        key: Key,
        (done_ppm, checkpoint): (u32, Option<u32>),
        of: Account,
    ) {
        self.context.report(report(report::Report::TaskStopped(TaskStopped {
            task: task(self.id, key),
            done_ppm,
            checkpoint,
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
            job: of.job,
        })));
    }

    pub(crate) fn set_mode(&mut self, set: SetMode) {
        let now = self.pass();
        let key = key(set.task);
        if self.model.set_mode(now, key.0, key.1, mode(set.mode())) {
            self.refresh_all();
            self.look(key);
            self.report_credits();
        }
    }

    /// What a vCPU is has changed: its quota does, and what those on it are promised.
    pub(crate) fn set_supply(&mut self, set: SetSupply, asked: &CommandStamp) {
        let now = self.pass();
        let since = if self.is_frozen() { now } else { self.clock.decided(asked) };
        let share = Ppm::new(set.share_ppm);
        self.model.set_supply_since(now.max(since), since, set.vcpu, share);
        self.refresh(set.vcpu);
        self.look_again();
        self.report_credits();
    }
}
