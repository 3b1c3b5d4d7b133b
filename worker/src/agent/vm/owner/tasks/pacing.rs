//! Keeping each task at the pace that it is promised: a task runs, runs a little faster, or is stopped.

use std::{sync::Arc, time::Duration};

use dormouse_tasks::progress::State;
use dormouse_units::Ppm;
use dormouse_vm::{KernelQuota, TaskPace, life::VmEvent};

use tokio::time::Instant;

use crate::{
    agent::{
        report::Key,
        test_fault,
        vm::{attempt::VmAttempt, owner::VmOwner},
    },
    cgroup::TierSlot,
};

/// Usual and shortest interval at which a task's progress is checked.
const LOOK: Duration = Duration::from_millis(100);
const SHORTEST_LOOK: Duration = Duration::from_millis(2);

impl VmOwner {
    /// Compares a task's progress with its promise, and changes its quota or stops it accordingly.
    pub(crate) fn pace_task(&mut self, key: Key) {
        self.pass_time();
        self.meter_own(key);
        let Some(attempt) = self.find_attempt(key) else { return };
        // What is in the slot of a program that has ended is its check.
        let has_ended = attempt.task_promise().is_none() || attempt.own_end.is_some();
        if has_ended || !self.lives.is_running(key) || self.is_frozen() {
            return;
        }
        let progress = attempt.process_progress();
        if let Err(hang) = self.see_alive(key, progress.as_ref()) {
            return self.give_up(key, &hang);
        }
        let Some(progress) = progress else {
            // There is nothing to be kept to its promise.
            return self.look_in(key, LOOK);
        };
        if matches!(progress.state, State::Done | State::Failed) {
            // Asked to stand still when all but over, it would never end.
            self.go_on(key);
            return self.let_end(key);
        }
        let Some(attempt) = self.find_attempt(key) else { return };
        let Some(promise) = attempt.task_promise() else { return };
        let (worked, promised) = (promise.worked_time(attempt), self.promised_time(key, promise));
        let quota = self.quota_of(attempt);
        let slice = self.machine.quota(quota).period_slice();
        let slice = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        let left = promise.ledger.whole_work().saturating_sub(worked);
        let holds = self.model.task_progress(key.0, key.1).is_some_and(|p| p.hold.is_some());
        let Some(promise) = self.attempt_mut(key).and_then(|a| a.promise_mut()) else { return };
        let given = KernelQuota { slice, ppm: quota };
        let pace = match holds {
            true => promise.ledger.hold_task(promised, worked, given),
            false => promise.ledger.set_pace(promised, worked, given),
        };
        let wake = match pace {
            TaskPace::Stand { until } => {
                let after = self.stand_until(key, until);
                self.set_times(key, Ppm::ONE);
                after
            }
            TaskPace::Run { times } => {
                self.go_on(key);
                self.set_times(key, times);
                self.perhaps_lift(key);
                // At its quota it does a known amount of work in a known time.
                let us = left / 1000 * 1_000_000 / u64::from(quota.max(1));
                Some(Duration::from_micros(us))
            }
        };
        self.look_in(key, wake.unwrap_or(LOOK).clamp(SHORTEST_LOOK, LOOK));
    }

    fn look_in(&mut self, key: Key, wait: Duration) {
        if let Some(attempt) = self.attempt_mut(key) {
            attempt.look = Some(Instant::now() + wait);
        }
    }

    /// Checks all tasks again as soon as possible, since speeds have changed.
    pub(crate) fn look_again(&mut self) {
        let now = Instant::now();
        let lives = &self.lives;
        let runs = |a: &&mut VmAttempt| lives.is_running(a.key) && a.task_promise().is_some();
        for attempt in self.attempts.iter_mut().filter(runs) {
            attempt.look = Some(now);
        }
    }

    /// Stops a task until its VM's model promises it `until` nanoseconds of CPU time; returns the real time until then, or `None`
    /// if that never comes as things are.
    fn stand_until(&mut self, key: Key, until: u64) -> Option<Duration> {
        let attempt = self.find_attempt(key)?;
        let after = self.time_to_promise(attempt, until);
        let attempt = self.attempt_mut(key)?;
        if attempt.is_kept() {
            attempt.note_standing(after.unwrap_or_default());
            if test_fault::skips_hold() {
                self.go_on(key);
                return None;
            }
        } else if attempt.standing.is_none() {
            attempt.process.as_ref()?;
            if let Err(why) = self.set_standing(key, true) {
                tracing::warn!(why, task = %key.0, "it can't be stopped and keeps running");
                return None;
            }
            if let Some(attempt) = self.attempt_mut(key) {
                attempt.standing = Some(Instant::now());
            }
        }
        after
    }

    /// Continues a task that is stopped.
    fn go_on(&mut self, key: Key) {
        let Some(attempt) = self.attempt_mut(key).filter(|a| a.standing.is_some()) else { return };
        let now = Instant::now();
        let kept = attempt.is_kept();
        if kept {
            attempt.note_standing(Duration::ZERO);
        }
        attempt.stands_no_longer(now);
        if let Err(why) = self.set_standing(key, false) {
            tracing::error!(why, task = %key.0, "it can't be continued and stays stopped");
        }
        let Some(attempt) = self.attempt_mut(key) else { return };
        if kept && let Some(pending) = &mut attempt.pending {
            pending.held = Some(now.saturating_duration_since(pending.stopped_at));
            self.apply_event(VmEvent::Resumed(key));
        }
    }

    /// Sets the ratio of an attempt's quota to the quota for its promised speed.
    fn set_times(&mut self, key: Key, times: Ppm) {
        let Some(attempt) = self.attempt_mut(key) else { return };
        let cpu = attempt.first_cpu();
        let Some(promise) = attempt.promise_mut() else { return };
        if std::mem::replace(&mut promise.times, times) != times {
            self.refresh_quota(cpu);
        }
    }

    /// Lifts the quota of an attempt whose program has ended, as the kernel's clean-up would otherwise delay its end.
    fn let_end(&mut self, key: Key) {
        self.look_in(key, LOOK);
        if self.find_attempt(key).is_some_and(|attempt| attempt.exempt.is_empty()) {
            self.exempt_ending(key);
        }
    }

    /// Lifts a task's quota if a test injects this fault, to check that the fidelity verdict notices it.
    fn perhaps_lift(&self, key: Key) {
        let Some(seat) = self.seats_of(key).first().copied() else { return };
        if let Some(span) = test_fault::lifts_quota_for() {
            self.lift_for(span, (seat.vcpu, seat.slot));
        }
    }

    /// Lifts the quota of a slot for `span`.
    pub(crate) fn lift_for(&self, span: Duration, (vcpu, slot): (u32, TierSlot)) {
        let lifted = Arc::clone(&self.machine).lift_quota(vcpu, slot);
        tracing::warn!(?span, vcpu, "a quota is lifted, as a test requests");
        let wait = move || {
            std::thread::sleep(span);
            drop(lifted);
        };
        if let Err(error) = std::thread::Builder::new().name("lift".to_owned()).spawn(wait) {
            tracing::warn!(%error, "no thread for that: the quota is as it was");
        }
    }
}
