//! Handling of parallel jobs from their start to their end, as far as it differs from that of other tasks.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{JobAccount, TaskMoved, TaskRef, TaskStarted, report};
use dormouse_vm::ideal::MachineChange;
use dormouse_vm::life::{AttemptPhase, VmEvent};

use tokio::time::Instant;

use crate::{
    agent::{
        machine::AttemptBirth,
        report::{Key, attempt_key, make_report, task_ref, whole_micros},
        vm::{
            CommandStamp,
            job::{DueTime, JobState, PERIOD_US},
            liveness::TaskLiveness,
            owner::VmOwner,
        },
    },
    cgroup::CpuQuota,
};

impl VmOwner {
    pub(crate) fn job_lives(&mut self, key: Key, birth: AttemptBirth) {
        let whose = task_ref(self.id, key);
        let Some(attempt) = self.attempt_mut(key) else { return };
        attempt.page.clone_from(&birth.page);
        attempt.liveness = TaskLiveness::default();
        let (process, page) = (birth.process, birth.page);
        attempt.process = Some(Arc::clone(&process));
        let (asked, on, done_ppm) = (attempt.asked, attempt.on.clone(), attempt.done_ppm());
        let (began_with, was_from) = (birth.done_ppm, attempt.from_ppm);
        let Some(job) = attempt.job_mut() else { return };
        job.ranks = birth.ranks;
        job.seen = None;
        let left_at = job.left_at;
        match job.moving.take() {
            Some(moving) => {
                let real_took_us = whole_micros(birth.at.saturating_duration_since(moving.asked));
                // As the report has it: who counts from there comes to the same.
                let at = left_at + Duration::from_micros(real_took_us);
                let anew = moving.lost.is_some();
                self.pace.apply_change(at, MachineChange::GoOn { key, on, anew });
                self.context.send_report(make_report(report::Report::TaskMoved(TaskMoved {
                    task: whose,
                    done_ppm,
                    lost: moving.lost,
                    real_took_us,
                    real_dump_us: whole_micros(moving.dump),
                    real_restore_us: whole_micros(birth.restore),
                    bytes: moving.bytes,
                })));
            }
            None => {
                let came_with = page.and_then(|page| page.work(job.ranks.len()));
                job.ledger.come_with(&came_with.unwrap_or_default());
                attempt.from_ppm = began_with;
                let real_took_us = whole_micros(birth.at.saturating_duration_since(asked));
                // An older checkpoint than the one that was wanted, or none: there is more to do.
                if began_with != was_from {
                    let at = self.pace.decided_time(&CommandStamp::stamp_now());
                    self.pace.apply_change(at, MachineChange::HasDone(key, began_with));
                }
                let seats = Some(self.told_seats(key));
                let started = TaskStarted {
                    task: whose,
                    done_ppm: began_with,
                    real_took_us,
                    seats,
                    real_inputs_us: 0,
                };
                self.context.send_report(make_report(report::Report::TaskStarted(started)));
            }
        }
        self.watch_process(key, &process);
        self.turn_meters();
    }

    pub(crate) fn obey_promote(&mut self, of: TaskRef, asked: &CommandStamp) {
        let key = attempt_key(Some(of));
        let Some(attempt) = self.find_attempt(key) else { return };
        if attempt.parallel_job().is_none() {
            return self.vm_broken("only parallel jobs can be promoted");
        }
        let at = self.pace.decided_time(asked);
        self.pace.apply_change(at, MachineChange::Promote(key));
        self.apply_event(VmEvent::Promote(key));
    }

    /// Stops the clock of the model that the VM's jobs are compared with, as the VM freezes.
    pub(crate) fn jobs_freeze(&mut self, asked: &CommandStamp) {
        self.pace.freeze_pace(asked);
        let machine = &self.machine;
        for job in self.attempts.iter_mut().filter_map(|a| a.job_mut()) {
            job.meter.stop_count(|rank| machine.rank_time(rank), &job.ranks);
            job.seen = None;
        }
    }

    /// Lets the clock of the model that the VM's jobs are compared with run again, as the VM thaws.
    pub(crate) fn jobs_thaw(&mut self, asked: &CommandStamp) {
        self.pace.thaw_pace(asked);
        self.turn_meters();
    }

    /// Returns whether a job that has ended should still be running.
    pub(crate) fn is_job_early(&mut self, key: Key) -> bool {
        let due = self.pace.due_time(key, Instant::now());
        let machine = Arc::clone(&self.machine);
        let Some(job) = self.attempt_mut(key).and_then(|a| a.job_mut()) else { return false };
        job.due = due;
        job.meter.stop_count(|rank| machine.rank_time(rank), &job.ranks);
        due.is_some_and(|due| !due.is_near)
    }

    /// Reports the end of jobs that ended early, once the time comes at which they should have ended.
    pub(crate) fn conclude_early(&mut self, now: Instant) {
        if self.is_frozen() {
            return;
        }
        let is_early = |key| self.lives.attempt_phase(key) == Some(AttemptPhase::Early);
        let early = self.attempts.iter().filter(|a| a.parallel_job().is_some() && is_early(a.key));
        for key in early.map(|a| a.key).collect::<Vec<_>>() {
            let now_due = self.pace.due_time(key, now);
            if now_due.is_some_and(|due| !due.is_near) {
                continue;
            }
            if let Some(job) = self.attempt_mut(key).and_then(|a| a.job_mut()) {
                // It ended when it did, whenever it should have.
                let late_us = job.due.map_or(0, |due| due.late_us);
                job.due = now_due.map(|due| DueTime { late_us, ..due });
            }
            self.apply_event(VmEvent::TimeHasCome(key));
        }
    }

    /// Returns the account of the CPU time that a job should have got and that it received.
    pub(crate) fn job_account(&self, job: &JobState) -> JobAccount {
        let core_ppm = u64::from(self.core_ppm.unwrap_or(1_000_000));
        let quota = |speed_ppm: u32| {
            let ppm = core_ppm * u64::from(speed_ppm) / 1_000_000;
            CpuQuota::from_ppm(u32::try_from(ppm).unwrap_or(u32::MAX), PERIOD_US)
        };
        JobAccount {
            uses: job.meter.process_uses(quota, self.context.tick),
            ledger: Some(job.ledger.wire_ledger()),
            real_late_us: job.due.map_or(0, |due| due.late_us),
        }
    }
}
