//! What is particular to parallel jobs: held to the phases of their plan, promoted and moved.

use std::time::Duration;

use dormouse_proto::v1::{
    JobAccount, JobLedger, MoveTask, Plan, Seats, StartTask, TaskMoved, TaskPromoted, TaskRef,
    TaskStarted, report,
};
use dormouse_units::{Ppm, Span, Tier};
use dormouse_vm::{
    ideal::{Change, Program},
    life::{Event, Key, Left, Phase},
};
use dormouse_worker::agent::in_process::{CommandStamp, Due};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    agenda::Work,
    attempt::{Attempt, Process},
    job::{Job, Move},
    launches::micros,
    owner::Owner,
    starts::key_of,
};
use crate::worker::uplink::Uplink;

/// Time that CRIU takes to dump all processes of a job, usually.
const DUMP: Duration = Duration::from_millis(40);
/// Time after which a job is looked at again at the soonest.
const SHORTEST: Duration = Duration::from_millis(2);
/// The agent's `FORESEEN`: an end is reported at most so long before it is due.
const FORESEEN: Duration = Duration::from_millis(60);

impl<U: Uplink> Owner<U> {
    pub(super) fn job(&mut self, key: Key) -> Option<&mut Job> {
        self.attempt(key).and_then(|attempt| attempt.job.as_deref_mut())
    }

    /// The reference goes on to now.
    pub(super) fn pace_now(&mut self) {
        let attempts = &self.attempts;
        let is_gone = |key| attempts.iter().all(|attempt| attempt.key != key);
        self.pace.advance(Instant::now(), is_gone);
    }

    /// Has the reference begin with a job.
    pub(super) fn seat_job(
        &mut self,
        key: Key,
        (order, plan): (&StartTask, &Plan),
        (seats, tier): (&Seats, Tier),
        asked: &CommandStamp,
    ) -> Result<Attempt, String> {
        let on = seats.vcpus.clone();
        if self.core_ppm.is_none() {
            return Err("what share of a core a vCPU is was not said of this VM".to_owned());
        }
        if !self.lives.slots().are_valid(&on) {
            return Err(format!("{on:?} are no vCPUs for a job"));
        }
        let usage = plan.usage_ppm.clone();
        if usage.len() != on.len() || plan.phases == 0 || usage.contains(&0) {
            return Err(format!("its plan is none for {} processes", on.len()));
        }
        let runtime = Duration::from_micros(plan.real_runtime_us);
        let program = Program { runtime, phases: plan.phases, usage };
        self.others_on(&on, true)?;
        let at = self.pace.decided(asked);
        let foreground = tier == Tier::Foreground;
        self.pace.change(at, Change::Start { key, program, on: on.clone(), foreground });
        let done = Ppm::new(order.from.map_or(0, |kept| kept.done_ppm));
        if done > Ppm::ZERO {
            self.pace.change(at, Change::HasDone(key, done.get()));
        }
        let points = order.checkpoints_ppm.iter().map(|&due| Ppm::new(due));
        let mut points: Vec<Ppm> = points.filter(|point| *point > done).collect();
        points.reverse();
        let began = self.clock.decided(asked);
        let mut attempt = self.new_attempt(key, order, on, (began, asked));
        attempt.job = Some(Box::new(Job { points, ..Job::default() }));
        Ok(attempt)
    }

    /// Refuses vCPUs on which there are tasks of the other kind.
    pub(super) fn others_on(&self, on: &[u32], jobs: bool) -> Result<(), String> {
        let is_there = |attempt: &&Attempt| {
            !self.lives.is_dead(attempt.key)
                && attempt.job.is_some() != jobs
                && attempt.on.iter().any(|vcpu| on.contains(vcpu))
        };
        match self.attempts.iter().find(is_there) {
            Some(other) => Err(format!("{} is of another kind and there", other.key.0)),
            None => Ok(()),
        }
    }

    /// Handles a job that has come to life; whether it is one.
    pub(super) fn job_lives(&mut self, key: Key) -> bool {
        let (task, seats) = (self.task(key), Some(self.told_seats(key)));
        let Some(attempt) = self.attempt(key).filter(|attempt| attempt.job.is_some()) else {
            return false;
        };
        let (asked, on) = (attempt.asked, attempt.on.clone());
        let done = attempt.image.map_or(Ppm::ZERO, |image| image.done);
        let is_other = std::mem::replace(&mut attempt.from, done) != done;
        let Some(job) = &mut attempt.job else { return false };
        let left_at = job.left_at;
        if let Some(moving) = job.moving.take() {
            let real_took_us = micros(moving.asked.elapsed());
            // As the report has it: who counts from there comes to the same.
            let at = left_at + Duration::from_micros(real_took_us);
            let anew = moving.lost.is_some();
            self.pace.change(at, Change::GoOn { key, on, anew });
            self.say(report::Report::TaskMoved(TaskMoved {
                task,
                done_ppm: done.get(),
                lost: moving.lost,
                real_took_us,
                real_dump_us: micros(moving.dump),
                real_restore_us: real_took_us.saturating_sub(micros(moving.dump)),
                bytes: moving.bytes,
            }));
            return true;
        }
        if is_other {
            let at = self.pace.decided(&CommandStamp::now());
            self.pace.change(at, Change::HasDone(key, done.get()));
        }
        let real_took_us = micros(Instant::now().saturating_duration_since(asked));
        let started =
            TaskStarted { task, done_ppm: done.get(), real_took_us, seats, real_inputs_us: 0 };
        self.say(report::Report::TaskStarted(started));
        true
    }

    /// Part of its work that a job should have done. Time must have gone on to now.
    pub(super) fn job_done(&self, key: Key) -> Ppm {
        self.pace.part_done(key).map_or(Ppm::ONE, Ppm::new)
    }

    /// Instant at which jobs are to be looked at, if there are any.
    pub(super) fn jobs_wake_at(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        for place in 0..self.attempts.len() {
            let key = self.attempts[place].key;
            let Some(job) = &self.attempts[place].job else { continue };
            let (goes_on_at, point) = (job.goes_on_at, job.points.last().copied());
            let phase = self.lives.phase(key);
            let mut at = goes_on_at.filter(|_| phase == Some(Phase::Running));
            if let Some(ends_in) = self.pace.ends_in(key, now) {
                let attempt = &self.attempts[place];
                let wait = match phase {
                    Some(Phase::Early) => ends_in.saturating_sub(FORESEEN),
                    Some(Phase::Running | Phase::Dumping | Phase::Launching) => {
                        let early = attempt.ends_early.map(|span| self.host.speedup.real(span));
                        let end = ends_in.saturating_sub(early.unwrap_or_default());
                        let end = if early.is_none() { end + attempt.ends_late } else { end };
                        let whole = attempt.order.plan.as_ref().map_or(0, |p| p.real_runtime_us);
                        let left = point.map(|point| {
                            let done = self.pace.part_done(key).unwrap_or(1_000_000);
                            let left = Ppm::new(point.get().saturating_sub(done));
                            Duration::from_micros(left.scale(whole))
                        });
                        left.map_or(end, |left| left.min(end))
                    }
                    _ => continue,
                };
                let wake = now + wait.max(SHORTEST);
                at = Some(at.map_or(wake, |at| at.min(wake)));
            }
            next = next.into_iter().chain(at).min();
        }
        next
    }

    /// Does for jobs what is due by now.
    pub(super) fn see_to_jobs(&mut self) {
        if self.lives.is_frozen() || self.attempts.iter().all(|attempt| attempt.job.is_none()) {
            return;
        }
        self.pace_now();
        self.jobs_go_on();
        self.checkpoint_jobs_that_are_due();
        self.jobs_end();
        self.conclude_early();
    }

    fn checkpoint_jobs_that_are_due(&mut self) {
        let mut due = Vec::new();
        for attempt in &mut self.attempts {
            let key = attempt.key;
            let Some(job) = attempt.job.as_mut().filter(|job| !job.points.is_empty()) else {
                continue;
            };
            // One that is through has passed them all.
            let done = self.pace.part_done(key).map_or(Ppm::ONE, Ppm::new);
            while let Some(point) = job.points.pop_if(|point| *point <= done) {
                due.push((key, point));
            }
        }
        for (key, point) in due {
            self.checkpoint_is_due(key, point);
        }
    }

    /// Jobs whose processes have done all their work end, a little before they should or after it.
    fn jobs_end(&mut self) {
        let now = Instant::now();
        let keys: Vec<Key> = self.attempts.iter().map(|attempt| attempt.key).collect();
        for key in keys {
            let Some(attempt) = self.seen(key).filter(|attempt| attempt.job.is_some()) else {
                continue;
            };
            if attempt.process != Process::Alive {
                continue;
            }
            let early = attempt.ends_early.map(|span| self.host.speedup.real(span));
            let late = attempt.ends_late;
            let Some(ends_in) = self.pace.ends_in(key, now) else { continue };
            match early {
                Some(early) if ends_in <= early => self.exit(key),
                None if ends_in.is_zero() => self.agenda.add(late, Work::Exit(key)),
                _ => {}
            }
        }
    }

    /// From now on a job should stand still, for what a checkpoint costs.
    pub(super) fn hold_job(&mut self, key: Key) {
        let Some(attempt) = self.seen(key).filter(|attempt| attempt.job.is_some()) else { return };
        let cost = self.real_cost(attempt);
        let (at, on_run_s_clock) = self.pace.told(Instant::now());
        self.pace.change(at, Change::Hold(key, cost));
        if let Some(job) = self.job(key) {
            job.held_at = Some(on_run_s_clock);
        }
    }

    /// The cost of a checkpoint, in the whole microseconds in which it is reported.
    fn real_cost(&self, attempt: &Attempt) -> Duration {
        let cost = Span::from_micros(attempt.order.emulated_checkpoint_cost_us);
        Duration::from_micros(micros(self.host.speedup.real(cost)))
    }

    /// A job should not stand still for its checkpoint any more.
    pub(super) fn release_job(&mut self, key: Key) {
        if self.job(key).is_some() {
            let at = self.pace.decided(&CommandStamp::now());
            self.pace.change(at, Change::Release(key));
        }
        if let Some(job) = self.job(key) {
            job.held_at = None;
        }
    }

    /// After its dump a job stands still for as long as it has to; whether it is a job.
    pub(super) fn job_stands(&mut self, key: Key) -> bool {
        if self.job(key).is_none() {
            return false;
        }
        let now = Instant::now();
        self.pace_now();
        let left = self.pace.held_for(key, now);
        let Some(cost) = self.seen(key).map(|attempt| self.real_cost(attempt)) else { return true };
        let Some(attempt) = self.attempt(key) else { return true };
        if attempt.is_kept() {
            if let Some(pending) = &mut attempt.pending {
                pending.owed.get_or_insert(cost);
            }
            if let Some(job) = &mut attempt.job {
                job.goes_on_at = Some(now + left);
            }
            self.jobs_go_on();
        }
        true
    }

    /// Lets the jobs go on that have stood still for long enough.
    fn jobs_go_on(&mut self) {
        let now = Instant::now();
        let is_due = |attempt: &&Attempt| {
            let at = attempt.job.as_ref().and_then(|job| job.goes_on_at);
            self.lives.is_running(attempt.key) && at.is_some_and(|at| at <= now)
        };
        let due: Vec<Key> = self.attempts.iter().filter(is_due).map(|a| a.key).collect();
        for key in due {
            self.ends_hold(key);
            self.happen(Event::GoesOn(key));
        }
    }

    /// A job stands still for its checkpoint no longer.
    fn ends_hold(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key) else { return };
        if attempt.is_kept()
            && let Some(pending) = &mut attempt.pending
        {
            let held = pending.stopped_at.elapsed();
            pending.owed.get_or_insert(held);
            pending.held = Some(held);
            attempt.process = Process::Alive;
        }
        attempt.stands_no_longer();
        if let Some(job) = &mut attempt.job {
            job.goes_on_at = None;
        }
    }

    pub(super) fn obey_promote(&mut self, task: TaskRef, asked: &CommandStamp) {
        let key = key_of(Some(task));
        let Some(attempt) = self.seen(key) else { return };
        if attempt.job.is_none() {
            return self.broken("only parallel jobs can be promoted");
        }
        let at = self.pace.decided(asked);
        self.pace.change(at, Change::Promote(key));
        self.happen(Event::Promote(key));
    }

    /// The slots of a job are foreground from now on.
    pub(super) fn turned(&mut self, key: Key) {
        let real_took_us = micros(self.commanded.decided().elapsed());
        let promoted = TaskPromoted { task: self.task(key), real_took_us };
        self.say(report::Report::TaskPromoted(promoted));
    }

    pub(super) fn obey_move(&mut self, to: MoveTask, asked: &CommandStamp) {
        let (key, on) = (key_of(to.task), to.vcpus);
        let Some(attempt) = self.seen(key) else { return };
        if attempt.job.is_none() {
            return self.broken("only parallel jobs can be moved");
        }
        if attempt.on.len() != on.len() || !self.lives.slots().are_valid(&on) {
            return self.broken(&format!("{on:?} are no vCPUs for a job"));
        }
        if let Err(why) = self.others_on(&on, true) {
            return self.broken(&why);
        }
        let at = self.pace.decided(asked);
        self.pace.change(at, Change::Stand(key));
        if let Some(job) = self.job(key) {
            job.left_at = at;
            job.asked_to_leave = Some(asked.decided());
        }
        self.happen(Event::Move { key, on });
    }

    /// A job that has not begun anywhere is to begin there.
    pub(super) fn redirect(&mut self, key: Key, on: Vec<u32>) {
        let Some(attempt) = self.attempt(key) else { return };
        attempt.on.clone_from(&on);
        if let Some(at) = attempt.job.as_ref().map(|job| job.left_at) {
            self.pace.change(at, Change::GoOn { key, on, anew: false });
        }
    }

    /// The job's turn at CRIU has come, to go elsewhere.
    pub(super) fn take_leave_turn(&mut self, key: Key, permit: OwnedSemaphorePermit) {
        if self.lives.phase(key) != Some(Phase::Dumping) {
            return;
        }
        if self.is_shut {
            drop(permit);
            return self.happen(Event::Left(key, Left::Overtaken));
        }
        self.ends_hold(key);
        self.held += 1;
        let takes = self.chance.time(DUMP) + self.host.slower();
        self.agenda.add(takes, Work::Leave(key, permit));
        if let Some(attempt) = self.attempt(key)
            && attempt.process == Process::Alive
        {
            attempt.process = Process::Still;
            attempt.standing = Some(Instant::now());
        }
    }

    /// CRIU has dumped all processes of a job, or could not.
    pub(super) fn leaves(&mut self, key: Key) {
        self.held = self.held.saturating_sub(1);
        self.pace_now();
        let fails = self.chance.happens(self.host.plan.rates.dump);
        let done = self.job_done(key);
        let Some(attempt) = self.attempt(key) else { return };
        if let Process::Exited { has_answer } = attempt.process {
            let ended = match has_answer {
                true => self.answer(key),
                false => Err("it ended with status 1".to_owned()),
            };
            return self.happen(Event::Left(key, Left::Ended(ended)));
        }
        let standing = attempt.standing.unwrap_or_else(Instant::now);
        attempt.stands_no_longer();
        attempt.process = Process::Killed;
        self.host.shared.process_is_gone(key);
        let kept = match fails {
            true => Err("CRIU failed".to_owned()),
            false => self.host.images.keep(key, done),
        };
        let (bytes, lost) = match &kept {
            Ok(_) => (56, None),
            Err(why) => (0, Some(why.clone())),
        };
        if let Ok(image) = &kept {
            self.host.witness().checkpoint_made(*image);
        }
        if let Some(job) = self.job(key) {
            let asked = job.asked_to_leave.take().unwrap_or_else(Instant::now);
            job.moving = Some(Move { asked, dump: standing.elapsed(), bytes, lost });
        }
        self.happen(Event::Left(key, Left::Gone { kept: kept.is_ok() }));
    }

    /// A job whose processes are gone is to go on there.
    pub(super) fn gone_from(&mut self, key: Key, on: Vec<u32>) {
        self.agenda.forget(key);
        if let Some(attempt) = self.attempt(key) {
            (attempt.process, attempt.image, attempt.on) = (Process::None, None, on);
            if attempt
                .job
                .as_ref()
                .is_some_and(|job| job.moving.as_ref().is_some_and(|moving| moving.lost.is_some()))
            {
                (attempt.order.from, attempt.from) = (None, Ppm::ZERO);
            }
        }
    }

    /// The checkpoint with which a job left is of no use.
    pub(super) fn begins_anew(&mut self, key: Key, why: String) {
        let Some(attempt) = self.attempt(key) else { return };
        (attempt.order.from, attempt.from) = (None, Ppm::ZERO);
        if let Some(moving) = attempt.job.as_mut().and_then(|job| job.moving.as_mut()) {
            moving.lost = Some(why);
        }
    }

    /// Whether a job should still be at work, though it is over; `None`: it is no job.
    pub(super) fn is_job_early(&mut self, key: Key) -> Option<bool> {
        self.job(key)?;
        let due = self.pace.due(key, Instant::now());
        if let Some(job) = self.job(key) {
            job.due = due;
        }
        Some(due.is_some_and(|due| !due.is_near))
    }

    /// Reports the jobs that are over and by now should be.
    pub(super) fn conclude_early(&mut self) {
        if self.lives.is_frozen() {
            return;
        }
        let is_early = |key| self.lives.phase(key) == Some(Phase::Early);
        let early = self.attempts.iter().filter(|a| a.job.is_some() && is_early(a.key));
        for key in early.map(|attempt| attempt.key).collect::<Vec<_>>() {
            let now_due = self.pace.due(key, Instant::now());
            if now_due.is_some_and(|due| !due.is_near) {
                continue;
            }
            if let Some(job) = self.job(key) {
                // It ended when it did, whenever it should have.
                let late_us = job.due.map_or(0, |due| due.late_us);
                job.due = now_due.map(|due| Due { late_us, ..due });
            }
            self.happen(Event::TimeHasCome(key));
        }
    }

    /// A job that has failed wants nothing more of its vCPUs.
    pub(super) fn forget_job(&mut self, key: Key) {
        if self.job(key).is_some() {
            let at = self.pace.decided(&CommandStamp::now());
            self.pace.change(at, Change::Kill(key));
        }
    }

    /// The account of a job that ends now.
    pub(super) fn job_account(&self, attempt: &Attempt) -> Option<JobAccount> {
        let job = attempt.job.as_ref()?;
        let core = Ppm::new(self.core_ppm.unwrap_or(1_000_000));
        let computed = self.pace.computed(attempt.key);
        let due: u64 = computed.into_iter().map(|of| core.scale(micros(of))).sum();
        let ledger = JobLedger { real_due_us: due, real_received_us: due, ..JobLedger::default() };
        Some(JobAccount {
            uses: Vec::new(),
            ledger: Some(ledger),
            real_late_us: job.due.map_or(0, |due| due.late_us),
        })
    }
}
