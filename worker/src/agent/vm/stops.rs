//! Stopping tasks, and changing how they run.

use std::sync::Arc;

use dormouse_proto::v1::{SetMode, SetSupply, StopTask, TaskStopped, report};
use dormouse_tasks::ideal::Change;
use dormouse_units::{Ppm, Tier};

use super::{attempt::Phase, clock::Asked, ends::Account, owner::Owner, starts::mode};
use crate::agent::report::{Key, explain, key, report, task};

impl Owner {
    pub(crate) fn obey_stop(&mut self, stop: StopTask, asked: &Asked) {
        let key = key(stop.task);
        if self.seen(key).is_some_and(|a| a.job().is_some()) {
            let at = self.pace.decided(asked);
            self.pace.change(at, Change::Kill(key));
        }
        self.stop(stop);
    }

    pub(crate) fn stop(&mut self, stop: StopTask) {
        let key = key(stop.task);
        let frozen = self.is_frozen();
        let can_keep = !frozen && self.host.checkpointer.is_some();
        let Some(attempt) = self.attempt(key) else {
            // It has ended, and that was reported.
            return self.say_stopped(key, (0, None), Account::default());
        };
        // What is kept of a job is moved, and not stored.
        let keep = stop.keep && can_keep && attempt.job().is_none();
        match attempt.phase {
            // It will not be heard of before the thaw, which may never come.
            Phase::Launching if frozen => {
                attempt.stop = Some(stop);
                self.leave_model(key);
                self.say_stopped_frozen(key);
                self.give_up_launch(key);
            }
            Phase::Launching | Phase::Dumping => attempt.stop = Some(stop),
            Phase::Dying | Phase::Gone => {}
            // Its process is not there yet, or gone before its time: there is nothing to be kept.
            Phase::Waiting { .. } | Phase::Early { .. } => {
                let done = match attempt.job() {
                    Some(_) => attempt.done_ppm(),
                    None => attempt.from_ppm,
                };
                attempt.stop = Some(stop);
                if let Some((account, _)) = self.take_out(key, false) {
                    self.say_stopped(key, (done, None), account);
                    self.launch_ready();
                }
            }
            // One that stands since its checkpoint has done nothing since.
            Phase::Running if keep && !attempt.is_kept() => {
                attempt.stop = Some(stop);
                self.ask_for_dump(key);
            }
            Phase::Running => {
                attempt.stop = Some(StopTask { keep, ..stop });
                self.kill(key);
            }
        }
    }

    /// Kills the process of an attempt, which then leaves its seat.
    ///
    /// On a frozen VM it is not seen to be gone before the thaw; it never executes another
    /// instruction of its own, since it wakes inside the kernel, with the signal pending.
    pub(crate) fn kill(&mut self, key: Key) {
        self.leave_model(key);
        let frozen = self.is_frozen();
        let Some(attempt) = self.attempt(key) else { return };
        if let Some(job) = attempt.job_mut() {
            job.meter.stop(&job.ranks);
        }
        if let Some(Err(error)) = attempt.process.as_ref().map(|process| process.kill()) {
            tracing::error!(why = explain(&error), "a task survives");
        }
        attempt.phase = Phase::Dying;
        attempt.look = None;
        let cpu = attempt.cpu();
        self.exempt(key);
        self.refresh(cpu);
        self.report_credits();
        if frozen {
            self.say_stopped_frozen(key);
        }
    }

    /// Lets an attempt that ends get on: throttled, or in the background, it would do so late. Its
    /// work is done, or it does none with the signal pending; its neighbours keep their quota.
    pub(crate) fn exempt(&mut self, key: Key) {
        for seat in self.seats_of(key) {
            if seat.tier == Tier::Background {
                let hurried = self.groups.hurry(seat.vcpu, seat.slot);
                self.note(hurried);
            }
            match Arc::clone(&self.groups).lift_quota_of(seat.vcpu, seat.slot) {
                Ok(lifted) => {
                    if let Some(attempt) = self.attempt(key) {
                        attempt.exempt.push(lifted);
                    }
                }
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Reports the end of an attempt on a frozen VM, of which nothing more can be expected.
    fn say_stopped_frozen(&mut self, key: Key) {
        let unsaid = self.attempts.iter().find(|a| a.key == key && !a.reported);
        let Some(attempt) = unsaid else { return };
        let account = self.account_of(attempt, false);
        self.say_stopped(key, (attempt.done_ppm(), None), account);
        if let Some(attempt) = self.attempt(key) {
            attempt.reported = true;
        }
    }

    /// Reports the end of a stopped attempt once its process is gone and, if it is to be kept,
    /// the coordinator has its checkpoint.
    pub(crate) fn settle_stop(&mut self, key: Key) {
        let Some(attempt) = self.seen(key) else { return };
        if !matches!(attempt.phase, Phase::Gone) {
            return;
        }
        if let Some(why) = attempt.wrong.clone() {
            return if attempt.reported {
                drop(self.take_out(key, false));
            } else {
                self.fail_attempt(key, why);
            };
        }
        let keep = attempt.stop.is_some_and(|stop| stop.keep);
        let mut kept = (attempt.done_ppm(), None);
        if keep && let Some(pending) = &attempt.pending {
            match &pending.stored {
                None => return,
                Some(Ok(_)) => kept = (pending.ppm, Some(pending.number)),
                Some(Err(why)) => {
                    tracing::warn!(why, task = %attempt.name, "the last checkpoint is lost");
                }
            }
        }
        let Some((account, attempt)) = self.take_out(key, false) else { return };
        if !attempt.reported {
            self.say_stopped(key, kept, account);
        }
    }

    /// With what of its work is done, and the checkpoint that keeps that.
    fn say_stopped(&self, key: Key, (done_ppm, checkpoint): (u32, Option<u32>), of: Account) {
        self.host.report(report(report::Report::TaskStopped(TaskStopped {
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
    pub(crate) fn set_supply(&mut self, set: SetSupply, asked: &Asked) {
        let now = self.pass();
        let since = if self.is_frozen() { now } else { self.clock.decided(asked) };
        let share = Ppm::new(set.share_ppm);
        self.model.set_supply_since(now.max(since), since, set.vcpu, share);
        self.refresh(set.vcpu);
        self.look_again();
        self.report_credits();
    }
}
