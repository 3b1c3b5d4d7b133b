//! Launches of attempts once their slots are free, and the outcomes of launches.

use std::time::Duration;

use super::{
    AttemptOutcome, AttemptPhase, AttemptStart, AttemptTable, BirthOutcome, Key, LaunchFailure,
    VmEffect,
    attempt::{AttemptKind, AttemptLife},
};

impl AttemptTable {
    pub(super) fn start_attempt(
        &mut self,
        now: Duration,
        AttemptStart { key, kind, on, tier }: AttemptStart,
    ) {
        let until = match kind {
            AttemptKind::Task => Some(now + self.limits.kill),
            // Those that are to leave its slots may take their time: CRIU has turns.
            AttemptKind::Job => None,
        };
        self.lives.push(AttemptLife {
            key,
            kind,
            on,
            tier,
            phase: AttemptPhase::Waiting { until },
            asked: false,
            again: false,
            pending: None,
            stop: None,
            wrong: None,
            reported: false,
            later: None,
            moving: false,
        });
        self.launch_ready();
    }

    /// Launches every attempt whose slots are free.
    pub(super) fn launch_ready(&mut self) {
        if !self.is_open() {
            return;
        }
        let (slots, effects) = (&mut self.slots, &mut self.effects);
        for life in &mut self.lives {
            let waits = matches!(life.phase, AttemptPhase::Waiting { .. });
            if waits && slots.are_free(&life.on, life.tier) {
                slots.take_slots(life.key, &life.on, life.tier);
                life.phase = AttemptPhase::Launching;
                let (key, moving) = (life.key, life.moving);
                effects.push(VmEffect::Launch {
                    key,
                    seats: slots.task_seats(key, &life.on),
                    moving,
                });
            }
        }
    }

    /// Ends an attempt whose slots are occupied by a process that doesn't die.
    pub(super) fn never_had_its_slot(&mut self, key: Key) {
        self.end_attempt(key, AttemptOutcome::Refused);
    }

    /// Handles the result of a launch; while the VM is frozen the result is put aside until the VM thaws.
    pub(super) fn hear_launched(&mut self, key: Key, result: Result<BirthOutcome, LaunchFailure>) {
        let given_up = self.find_life(key).is_some_and(|life| life.reported);
        if self.is_frozen() && !given_up {
            self.held.push((key, result));
        } else {
            self.launch_ended(key, result);
        }
    }

    /// Gives up the launch of an attempt whose end was reported.
    pub(super) fn give_up_launch(&mut self, key: Key) {
        self.push_effect(VmEffect::Revoke(key));
        if let Some(place) = self.held.iter().position(|(held, _)| *held == key) {
            let (_, result) = self.held.remove(place);
            self.launch_ended(key, result);
        }
    }

    pub(super) fn launch_ended(&mut self, key: Key, result: Result<BirthOutcome, LaunchFailure>) {
        let Some(life) = self.life_mut(key) else { return };
        if life.phase != AttemptPhase::Launching {
            return;
        }
        match result {
            Ok(BirthOutcome::Alive) if life.reported => {
                // What was given up and has come to life all the same is killed.
                self.push_effect(VmEffect::WatchUnwanted(key));
                self.kill_attempt(key);
            }
            _ if life.reported => self.is_gone(key),
            Ok(BirthOutcome::Alive) => {
                life.phase = AttemptPhase::Running;
                let stop = life.stop.take();
                self.push_effect(VmEffect::Began(key));
                match stop {
                    Some(keep) => self.stop_attempt(key, keep),
                    None => {
                        self.perhaps_leave(key);
                        self.ask_again(key);
                    }
                }
            }
            Ok(BirthOutcome::Over(result)) => {
                life.phase = AttemptPhase::Running;
                self.push_effect(VmEffect::Began(key));
                self.process_exited(key, result);
            }
            // The checkpoint is of no use: it begins again where it should go on.
            Err(LaunchFailure { why, .. }) if std::mem::take(&mut life.moving) => {
                life.phase = AttemptPhase::Waiting { until: None };
                let stop = life.stop.take();
                self.slots.leave_slots(key);
                self.push_effect(VmEffect::BeginAnew { key, why });
                match stop {
                    Some(keep) => self.stop_attempt(key, keep),
                    None => self.launch_ready(),
                }
            }
            Err(LaunchFailure { why, image }) => {
                self.end_attempt(key, AttemptOutcome::Failed { why, image });
            }
        }
    }
}
