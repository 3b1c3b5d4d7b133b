//! What is particular to a parallel job from its birth to its end.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{JobAccount, TaskMoved, TaskRef, TaskStarted, report};
use dormouse_vm::ideal::Change;
use dormouse_vm::life::{Event, Phase};

use tokio::time::Instant;

use crate::{
    agent::{
        report::{Key, key, micros, report, task},
        vm::{
            CommandStamp,
            job::{Due, Job, JobBirth, PERIOD_US},
            liveness::Liveness,
            owner::Owner,
        },
    },
    cgroup::CpuQuota,
};

impl Owner {
    pub(crate) fn job_lives(&mut self, key: Key, birth: JobBirth) {
        let whose = task(self.id, key);
        let Some(attempt) = self.attempt(key) else { return };
        attempt.page = Some(birth.page);
        attempt.liveness = Liveness::default();
        let process = birth.process;
        attempt.process = Some(Arc::clone(&process));
        let (asked, on, done_ppm) = (attempt.asked, attempt.on.clone(), attempt.done_ppm());
        // An older checkpoint than the one that was wanted, or none: there is more to do.
        let began_with = birth.done_ppm;
        let other = began_with.filter(|done| *done != attempt.from_ppm);
        attempt.from_ppm = began_with.unwrap_or(attempt.from_ppm);
        let from_ppm = attempt.from_ppm;
        let Some(job) = attempt.job_mut() else { return };
        job.ranks = birth.ranks;
        job.seen = None;
        let left_at = job.left_at;
        match job.moving.take() {
            Some(moving) => {
                let real_took_us = micros(birth.at.saturating_duration_since(moving.asked));
                // As the report has it: who counts from there comes to the same.
                let at = left_at + Duration::from_micros(real_took_us);
                let anew = moving.lost.is_some();
                self.pace.change(at, Change::GoOn { key, on, anew });
                self.context.report(report(report::Report::TaskMoved(TaskMoved {
                    task: whose,
                    done_ppm,
                    lost: moving.lost,
                    real_took_us,
                    real_dump_us: micros(moving.dump),
                    real_restore_us: micros(birth.restore),
                    bytes: moving.bytes,
                })));
            }
            None => {
                let real_took_us = micros(birth.at.saturating_duration_since(asked));
                if let Some(done) = other {
                    let at = self.pace.decided(&CommandStamp::now());
                    self.pace.change(at, Change::HasDone(key, done));
                }
                let seats = Some(self.told_seats(key));
                let started = TaskStarted {
                    task: whose,
                    done_ppm: from_ppm,
                    real_took_us,
                    seats,
                    real_inputs_us: 0,
                };
                self.context.report(report(report::Report::TaskStarted(started)));
            }
        }
        self.watch(key, &process);
        self.turn_meters();
    }

    pub(crate) fn obey_promote(&mut self, of: TaskRef, asked: &CommandStamp) {
        let key = key(Some(of));
        let Some(attempt) = self.seen(key) else { return };
        if attempt.job().is_none() {
            return self.broken("only parallel jobs can be promoted");
        }
        let at = self.pace.decided(asked);
        self.pace.change(at, Change::Promote(key));
        self.happen(Event::Promote(key));
    }

    /// The jobs stand still with their VM.
    pub(crate) fn jobs_freeze(&mut self, asked: &CommandStamp) {
        self.pace.freeze(asked);
        let machine = &self.machine;
        for job in self.attempts.iter_mut().filter_map(|a| a.job_mut()) {
            job.meter.stop(|rank| machine.rank_time(rank), &job.ranks);
            job.seen = None;
        }
    }

    /// And go on with it.
    pub(crate) fn jobs_thaw(&mut self, asked: &CommandStamp) {
        self.pace.thaw(asked);
        self.turn_meters();
    }

    /// Whether the job should still be at work, though it is over.
    pub(crate) fn is_job_early(&mut self, key: Key) -> bool {
        let due = self.pace.due(key, Instant::now());
        let machine = Arc::clone(&self.machine);
        let Some(job) = self.attempt(key).and_then(|a| a.job_mut()) else { return false };
        job.due = due;
        job.meter.stop(|rank| machine.rank_time(rank), &job.ranks);
        due.is_some_and(|due| !due.is_near)
    }

    /// Reports the jobs that are over and by now should be.
    pub(crate) fn conclude_early(&mut self, now: Instant) {
        if self.is_frozen() {
            return;
        }
        let is_early = |key| self.lives.phase(key) == Some(Phase::Early);
        let early = self.attempts.iter().filter(|a| a.job().is_some() && is_early(a.key));
        for key in early.map(|a| a.key).collect::<Vec<_>>() {
            let now_due = self.pace.due(key, now);
            if now_due.is_some_and(|due| !due.is_near) {
                continue;
            }
            if let Some(job) = self.attempt(key).and_then(|a| a.job_mut()) {
                // It ended when it did, whenever it should have.
                let late_us = job.due.map_or(0, |due| due.late_us);
                job.due = now_due.map(|due| Due { late_us, ..due });
            }
            self.happen(Event::TimeHasCome(key));
        }
    }

    /// What a job was due and got.
    pub(crate) fn job_account(&self, job: &Job) -> JobAccount {
        let core_ppm = u64::from(self.core_ppm.unwrap_or(1_000_000));
        let quota = |speed_ppm: u32| {
            let ppm = core_ppm * u64::from(speed_ppm) / 1_000_000;
            CpuQuota::from_ppm(u32::try_from(ppm).unwrap_or(u32::MAX), PERIOD_US)
        };
        JobAccount {
            uses: job.meter.uses(quota, self.context.tick),
            ledger: Some(job.ledger.told()),
            real_late_us: job.due.map_or(0, |due| due.late_us),
        }
    }
}
