//! Keeping each task to what it is promised: it runs, runs a little faster, or stands still.

use std::time::{Duration, Instant};

use dormouse_tasks::progress::State;
use dormouse_units::Ppm;
use dormouse_vm::{Pace, Quota};

use super::{attempt::Phase, owner::Owner};
use crate::{
    agent::{
        fault,
        report::{Key, explain},
    },
    process::{ask_to_stop, resume},
};

/// How often a task is looked at, and how often at most.
const LOOK: Duration = Duration::from_millis(100);
const SHORTEST_LOOK: Duration = Duration::from_millis(2);

impl Owner {
    /// Looks how far a task is and how far it should be, and acts accordingly.
    pub(crate) fn look(&mut self, key: Key) {
        self.pass();
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        if !matches!(attempt.phase, Phase::Running) || self.model.machine().is_frozen() {
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
            return self.let_end(key);
        }
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        if attempt.due_again && attempt.pending.is_none() && !attempt.dump_asked {
            self.ask_for_dump(key);
        }
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        let (worked, promised) = (attempt.worked(), self.promised(attempt));
        let quota = self.quota_of(attempt);
        let slice = self.groups.quota(quota).slice();
        let slice = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        let left = attempt.ledger.whole().saturating_sub(worked);
        let holds = self.model.progress(key.0, key.1).is_some_and(|p| p.hold.is_some());
        let Some(attempt) = self.attempt(key) else { return };
        let given = Quota { slice, ppm: quota };
        let pace = match holds {
            true => attempt.ledger.hold(promised, worked, given),
            false => attempt.ledger.pace(promised, worked, given),
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
        for attempt in self.attempts.iter_mut().filter(|a| matches!(a.phase, Phase::Running)) {
            attempt.look = Some(now);
        }
    }

    /// Has a task stand still until it is promised so much CPU time; how long that will be.
    fn stand(&mut self, key: Key, until: u64) -> Option<Duration> {
        let attempt = self.attempts.iter().find(|a| a.key == key)?;
        let after = self.time_to_promise(attempt, until);
        let attempt = self.attempt(key)?;
        if attempt.is_kept() {
            attempt.owe(after.unwrap_or_default());
            if fault::skips_hold() {
                self.go_on(key);
                return None;
            }
        } else if attempt.standing.is_none() {
            let process = attempt.process.as_ref()?;
            // One that its quota keeps from running stops when it would run next.
            if let Err(error) = ask_to_stop(process.pid()) {
                tracing::warn!(why = explain(&error), task = %attempt.name, "it runs on");
                return None;
            }
            attempt.standing = Some(Instant::now());
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
        if let Some(process) = &attempt.process
            && let Err(error) = resume(process.pid())
        {
            tracing::error!(why = explain(&error), task = %attempt.name, "it stands still");
        }
        if kept && let Some(pending) = &mut attempt.pending {
            pending.held = Some(now.saturating_duration_since(pending.stopped_at));
            self.settle_checkpoint(key);
        }
    }

    /// Its quota is this many times that of its speed.
    fn set_times(&mut self, key: Key, times: Ppm) {
        let Some(attempt) = self.attempt(key) else { return };
        let cpu = attempt.cpu;
        if std::mem::replace(&mut attempt.times, times) != times {
            self.refresh(cpu);
        }
    }

    /// Its program is over: what is left is the kernel's business and would only be late.
    fn let_end(&mut self, key: Key) {
        let groups = std::sync::Arc::clone(&self.groups);
        self.look_in(key, LOOK);
        let Some(attempt) = self.attempt(key) else { return };
        if attempt.exempt.is_none() {
            match groups.lift_quota_of(attempt.cpu, attempt.slot) {
                Ok(lifted) => attempt.exempt = Some(lifted),
                Err(error) => self.fail(&error),
            }
        }
    }

    /// The fault that the tests of the verdict are about.
    fn perhaps_lift(&self, key: Key) {
        let Some(attempt) = self.attempts.iter().find(|a| a.key == key) else { return };
        let Some(span) = fault::lifts_quota_for() else { return };
        if let Ok(lifted) = self.groups.clone().lift_quota_of(attempt.cpu, attempt.slot) {
            std::thread::spawn(move || {
                std::thread::sleep(span);
                drop(lifted);
            });
        }
    }
}
