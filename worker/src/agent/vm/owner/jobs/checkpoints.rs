//! Checkpoints of jobs that run on: all processes of a job are dumped together, and stopped on their vCPUs for as long
//! as in the reference model.

use std::{sync::Arc, time::Duration};

use dormouse_units::{Ppm, Span, Tier};
use dormouse_vm::{ideal::MachineChange, life::VmEvent};
use tokio::time::Instant;

use crate::agent::{
    machine::CountedWork,
    report::{Key, whole_micros},
    test_fault,
    vm::{CommandStamp, attempt::VmAttempt, owner::VmOwner},
};

impl VmOwner {
    /// Advances the model that the VM's jobs are compared with to now.
    pub(crate) fn pace_now(&mut self) {
        self.pace_to(Instant::now());
    }

    /// Returns the part of a job's work that should be done by now; `None`: the job should have finished.
    pub(crate) fn job_done(&self, key: Key) -> Option<Ppm> {
        self.pace.ideal.part_done(key).map(Ppm::new)
    }

    /// Checkpoints the jobs that have reached a checkpoint position.
    pub(crate) fn checkpoint_jobs_that_are_due(&mut self) {
        let mut due = Vec::new();
        let ideal = &self.pace.ideal;
        for attempt in &mut self.attempts {
            let key = attempt.key;
            let Some(job) = attempt.job_mut().filter(|job| !job.points.is_empty()) else {
                continue;
            };
            // One that is through has passed them all.
            let done = ideal.part_done(key).map_or(Ppm::ONE, Ppm::new);
            while let Some(point) = job.points.pop_if(|point| *point <= done) {
                due.push((key, point));
            }
        }
        for (key, point) in due {
            self.checkpoint_is_due(key, point);
        }
    }

    /// Stops a job in the model that it is compared with, from now on, for the cost of a checkpoint.
    pub(crate) fn hold_job(&mut self, key: Key) {
        let Some(attempt) = self.find_attempt(key).filter(|a| a.parallel_job().is_some()) else {
            return;
        };
        let cost = self.real_cost(attempt);
        let (at, on_run_s_clock) = self.pace.both_times(Instant::now());
        self.pace.apply_change(at, MachineChange::Hold(key, cost));
        if let Some(job) = self.attempt_mut(key).and_then(VmAttempt::job_mut) {
            job.held_at = Some(on_run_s_clock);
        }
    }

    /// Returns the real time that a checkpoint costs, rounded to whole microseconds as in reports.
    fn real_cost(&self, attempt: &VmAttempt) -> Duration {
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        Duration::from_micros(whole_micros(self.context.speedup.to_real(cost)))
    }

    /// Ends a job's stop for a checkpoint in the model that it is compared with, as the checkpoint isn't taken.
    pub(crate) fn release_job(&mut self, key: Key) {
        if self.find_attempt(key).is_some_and(|attempt| attempt.parallel_job().is_some()) {
            let at = self.pace.decided_time(&CommandStamp::stamp_now());
            self.pace.apply_change(at, MachineChange::Release(key));
        }
        if let Some(job) = self.attempt_mut(key).and_then(VmAttempt::job_mut) {
            job.held_at = None;
        }
    }

    /// Checkpoints a job that has got its permit to use CRIU; `stopping`: the job doesn't run on after the dump.
    pub(crate) fn dump_job(&mut self, key: Key, stopping: bool) {
        if self.context.hold_checkpoints && !stopping {
            // From now on, whenever it was due: a busy host makes a checkpoint later, never longer.
            self.hold_job(key);
        }
        let machine = Arc::clone(&self.machine);
        let Some(attempt) = self.attempt_mut(key).filter(|attempt| attempt.process.is_some())
        else {
            return;
        };
        let due = attempt.due.filter(|_| !stopping);
        attempt.liveness.pause_watch();
        let Some(job) = attempt.job_mut() else { return };
        job.meter.stop_count(|rank| machine.rank_time(rank), &job.ranks);
        let counts = CountedWork::Reported { attempt: key.1, due, known: None };
        self.send_dump(key, counts, stopping);
    }

    /// Gives the slots of a background job their low priority back, which a dump had raised.
    pub(crate) fn job_is_as_it_was(&mut self, key: Key) {
        if self.find_attempt(key).is_none_or(|attempt| attempt.parallel_job().is_none()) {
            return;
        }
        for seat in self.seats_of(key).iter().filter(|seat| seat.tier == Tier::Background) {
            let demoted = self.machine.demote(seat.vcpu, seat.slot);
            self.note_set(demoted);
        }
    }

    /// Keeps a job stopped after its dump, until it was stopped for as long as a checkpoint should take.
    pub(crate) fn job_stands(&mut self, key: Key) {
        if self.find_attempt(key).is_none_or(|attempt| attempt.parallel_job().is_none()) {
            return;
        }
        let now = Instant::now();
        self.pace_now();
        let left = self.pace.held_for(key, now);
        let Some(cost) = self.find_attempt(key).map(|attempt| self.real_cost(attempt)) else {
            return;
        };
        let Some(attempt) = self.attempt_mut(key) else { return };
        if attempt.is_kept() {
            if let Some(pending) = &mut attempt.pending {
                // Of a dump that took longer, no more.
                pending.owed.get_or_insert(cost);
            }
            let left = if test_fault::skips_hold() { Duration::ZERO } else { left };
            if let Some(job) = attempt.job_mut() {
                job.goes_on_at = Some(now + left);
            }
            self.jobs_go_on(now);
        }
        self.turn_meters();
    }

    /// Continues the jobs that have been stopped for as long as their checkpoint should take.
    pub(crate) fn jobs_go_on(&mut self, now: Instant) {
        let is_due = |at: Instant| at <= now;
        let due = self.attempts.iter().filter(|a| {
            self.lives.is_running(a.key)
                && a.parallel_job().and_then(|j| j.goes_on_at).is_some_and(is_due)
        });
        let due: Vec<Key> = due.map(|attempt| attempt.key).collect();
        let any = !due.is_empty();
        for key in due {
            let machine = Arc::clone(&self.machine);
            let Some(attempt) = self.attempt_mut(key) else { continue };
            attempt.ends_hold(now);
            let going = attempt.parallel_job().map(|job| machine.resume_ranks(&job.ranks));
            if let Some(Err(why)) = going {
                tracing::error!(why, job = %attempt.name, "it can't be continued and stays stopped");
            }
            self.apply_event(VmEvent::Resumed(key));
        }
        if any {
            self.turn_meters();
        }
    }
}
