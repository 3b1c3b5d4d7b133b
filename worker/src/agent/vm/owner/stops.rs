//! Stopping tasks, and changing how they run.

use std::sync::Arc;

use dormouse_proto::v1::{SetMode, SetSupply, StopTask, TaskStopped, report};
use dormouse_units::{Ppm, Tier};
use dormouse_vm::ideal::MachineChange;
use dormouse_vm::life::{KeptWork, VmEvent};

use super::{VmOwner, starts::read_mode};
use crate::agent::{
    own,
    report::{Key, attempt_key, explain_error, make_report, task_ref},
    vm::{
        account::AttemptAccount, attempt::VmAttempt, clock::CommandStamp,
        last_save::DeferredRequest,
    },
};

impl VmOwner {
    pub(crate) fn obey_stop(&mut self, stop: StopTask, asked: &CommandStamp) {
        let key = attempt_key(stop.task);
        let mut keep = stop.keep;
        if keep && let Some(attempt) = self.find_attempt(key) {
            // One that does not save its work on request leaves nothing to be kept.
            keep = self.context.keeps_checkpoints(&attempt.order)
                && (attempt.last_save.is_some() || own::is_kept_while_it_runs(&attempt.order));
            if self.put_off(key, DeferredRequest::Stop(stop, *asked)).is_none() {
                return;
            }
        }
        if self.find_attempt(key).is_some_and(|a| a.parallel_job().is_some()) {
            let at = self.pace.decided_time(asked);
            self.pace.apply_change(at, MachineChange::Kill(key));
        }
        self.apply_event(VmEvent::Stop { key, keep });
    }

    /// Kills the process of an attempt; the attempt leaves its seat when the process is gone.
    pub(crate) fn kill_process(&mut self, key: Key) {
        self.leave_model(key);
        let machine = Arc::clone(&self.machine);
        let Some(attempt) = self.attempt_mut(key) else { return };
        if let Some(job) = attempt.job_mut() {
            job.meter.stop_count(|rank| machine.rank_time(rank), &job.ranks);
        }
        if let Some(Err(error)) = attempt.process.as_ref().map(|process| process.kill()) {
            tracing::error!(why = explain_error(&error), "a task survives its kill");
        }
        if attempt.own.is_some()
            && let Some(slot) = attempt.task_promise().map(|promise| promise.slot)
        {
            // Where groups are of version 1 it dies only when it is not held.
            let _ = machine.let_go(attempt.first_cpu(), slot);
        }
        attempt.is_killed = true;
        attempt.look = None;
        let cpu = attempt.first_cpu();
        let has_ended = attempt.own_end.is_some();
        self.exempt_ending(key);
        self.refresh_quota(cpu);
        self.report_credits();
        if has_ended {
            // Its process is gone already, and nobody will say so again: what is left is its check.
            self.end_check(key);
            self.reap_process(key);
        }
    }

    /// Exempts an ending attempt from its quota: throttled or in the background the attempt would end late. The attempt's work is
    /// done, or a pending signal keeps it from working; its neighbours keep their quota.
    pub(crate) fn exempt_ending(&mut self, key: Key) {
        for seat in self.seats_of(key) {
            if seat.tier == Tier::Background {
                let boosted = self.machine.boost(seat.vcpu, seat.slot);
                self.note_set(boosted);
            }
            match Arc::clone(&self.machine).lift_quota(seat.vcpu, seat.slot) {
                Ok(lifted) => {
                    if let Some(attempt) = self.attempt_mut(key) {
                        attempt.exempt.push(lifted);
                    }
                }
                Err(error) => self.fail_vm(&error),
            }
        }
    }

    /// Answers a request to stop an attempt that is no longer on the VM, and whose end was reported before.
    pub(crate) fn say_unknown(&self, key: Key) {
        self.say_stopped(key, (0, None), AttemptAccount::default());
    }

    /// Returns the part of a stopped attempt's work that isn't lost, in ppm, and the number of the checkpoint that holds it
    /// (`None`: no checkpoint does).
    pub(crate) fn kept_of(attempt: &VmAttempt, kept: KeptWork) -> (u32, Option<u32>) {
        match (kept, &attempt.pending) {
            (KeptWork::Checkpoint(number), Some(pending)) => (pending.ppm, Some(number)),
            (KeptWork::Begun, _) if attempt.parallel_job().is_none() => (attempt.from_ppm, None),
            _ => (attempt.done_ppm(), None),
        }
    }

    /// Reports a stopped attempt with the part of its work that is done, in ppm, and the number of the checkpoint that holds it, if
    /// any.
    pub(crate) fn say_stopped(
        &self,
        key: Key,
        (done_ppm, checkpoint): (u32, Option<u32>),
        of: AttemptAccount,
    ) {
        self.context.send_report(make_report(report::Report::TaskStopped(TaskStopped {
            task: task_ref(self.id, key),
            done_ppm,
            checkpoint,
            real_cpu_us: of.cpu_us,
            ledger: of.ledger,
            job: of.job,
        })));
    }

    pub(crate) fn set_mode(&mut self, set: SetMode) {
        let now = self.pass_time();
        let key = attempt_key(set.task);
        if self.model.set_mode(now, key.0, key.1, read_mode(set.mode())) {
            self.refresh_all();
            self.pace_task(key);
            self.report_credits();
        }
    }

    /// Sets a vCPU's share of a core, and with it its quota and the promises of its tasks.
    pub(crate) fn set_supply(&mut self, set: SetSupply, asked: &CommandStamp) {
        let now = self.pass_time();
        let since = if self.is_frozen() { now } else { self.clock.note_decided(asked) };
        let share = Ppm::new(set.share_ppm);
        self.model.set_supply_since(now.max(since), since, set.vcpu, share);
        self.refresh_quota(set.vcpu);
        self.look_again();
        self.report_credits();
    }
}
