//! Keeping each task to what it is promised: it runs, runs a little faster, or stands still.

use std::{sync::Arc, time::Duration};

use dormouse_tasks::progress::State;
use dormouse_units::Ppm;
use dormouse_vm::{Pace, Quota, life::Event};

use tokio::time::Instant;

use crate::{
    agent::{
        report::Key,
        test_fault,
        vm::{attempt::Attempt, owner::Owner},
    },
    cgroup::Slot,
};

/// How often a task is looked at, and how often at most.
const LOOK: Duration = Duration::from_millis(100);
const SHORTEST_LOOK: Duration = Duration::from_millis(2);

impl Owner {
    /// Looks how far a task is and how far it should be, and acts accordingly.
    pub(crate) fn look(&mut self, key: Key) {
        self.pass();
        self.meter_own(key);
        let Some(attempt) = self.seen(key) else { return };
        // What is in the slot of a program that has ended is its check.
        let has_ended = attempt.promise().is_none() || attempt.own_end.is_some();
        if has_ended || !self.lives.is_running(key) || self.is_frozen() {
            return;
        }
        let progress = attempt.progress();
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
        let Some(attempt) = self.seen(key) else { return };
        let Some(promise) = attempt.promise() else { return };
        let (worked, promised) = (promise.worked(attempt), self.promised(key, promise));
        let quota = self.quota_of(attempt);
        let slice = self.machine.quota(quota).slice();
        let slice = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        let left = promise.ledger.whole().saturating_sub(worked);
        let holds = self.model.progress(key.0, key.1).is_some_and(|p| p.hold.is_some());
        let Some(promise) = self.attempt(key).and_then(|a| a.promise_mut()) else { return };
        let given = Quota { slice, ppm: quota };
        let pace = match holds {
            true => promise.ledger.hold(promised, worked, given),
            false => promise.ledger.pace(promised, worked, given),
        };
        let wake = match pace {
            Pace::Stand { until } => {
                let after = self.stand(key, until);
                self.set_times(key, Ppm::ONE);
                after
            }
            Pace::Run { times } => {
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
        if let Some(attempt) = self.attempt(key) {
            attempt.look = Some(Instant::now() + wait);
        }
    }

    /// All are looked at again as soon as can be: speeds have changed.
    pub(crate) fn look_again(&mut self) {
        let now = Instant::now();
        let lives = &self.lives;
        let runs = |a: &&mut Attempt| lives.is_running(a.key) && a.promise().is_some();
        for attempt in self.attempts.iter_mut().filter(runs) {
            attempt.look = Some(now);
        }
    }

    /// Has a task stand still until it is promised so much CPU time; how long that will be.
    fn stand(&mut self, key: Key, until: u64) -> Option<Duration> {
        let attempt = self.seen(key)?;
        let after = self.time_to_promise(attempt, until);
        let attempt = self.attempt(key)?;
        if attempt.is_kept() {
            attempt.owe(after.unwrap_or_default());
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
            if let Some(attempt) = self.attempt(key) {
                attempt.standing = Some(Instant::now());
            }
        }
        after
    }

    /// Lets a task go on that stands still.
    fn go_on(&mut self, key: Key) {
        let Some(attempt) = self.attempt(key).filter(|a| a.standing.is_some()) else { return };
        let now = Instant::now();
        let kept = attempt.is_kept();
        if kept {
            attempt.owe(Duration::ZERO);
        }
        attempt.stands_no_longer(now);
        if let Err(why) = self.set_standing(key, false) {
            tracing::error!(why, task = %key.0, "it can't be continued and stays stopped");
        }
        let Some(attempt) = self.attempt(key) else { return };
        if kept && let Some(pending) = &mut attempt.pending {
            pending.held = Some(now.saturating_duration_since(pending.stopped_at));
            self.happen(Event::GoesOn(key));
        }
    }

    /// Sets the ratio of the attempt's quota to that of its speed, in ppm.
    fn set_times(&mut self, key: Key, times: Ppm) {
        let Some(attempt) = self.attempt(key) else { return };
        let cpu = attempt.cpu();
        let Some(promise) = attempt.promise_mut() else { return };
        if std::mem::replace(&mut promise.times, times) != times {
            self.refresh(cpu);
        }
    }

    /// Exempts an attempt whose program is over: what is left is the kernel's and would be late.
    fn let_end(&mut self, key: Key) {
        self.look_in(key, LOOK);
        if self.seen(key).is_some_and(|attempt| attempt.exempt.is_empty()) {
            self.exempt(key);
        }
    }

    /// The fault that the tests of the verdict are about.
    fn perhaps_lift(&self, key: Key) {
        let Some(seat) = self.seats_of(key).first().copied() else { return };
        if let Some(span) = test_fault::lifts_quota_for() {
            self.lift_for(span, (seat.vcpu, seat.slot));
        }
    }

    /// Lifts the quota of a slot for so long.
    pub(crate) fn lift_for(&self, span: Duration, (vcpu, slot): (u32, Slot)) {
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
