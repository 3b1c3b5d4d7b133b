//! Bringing attempts to life once their slots are free, and what comes of it.

use std::time::Duration;

use super::{
    AttemptTable, Came, Effect, End, Key, LaunchError, Phase, Start,
    attempt::{Kind, Life},
};

impl AttemptTable {
    pub(super) fn start(&mut self, now: Duration, Start { key, kind, on, tier }: Start) {
        let until = match kind {
            Kind::Task => Some(now + self.limits.kill),
            // Those that are to leave its slots may take their time: CRIU has turns.
            Kind::Job => None,
        };
        self.lives.push(Life {
            key,
            kind,
            on,
            tier,
            phase: Phase::Waiting { until },
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

    /// Begins the launch of every attempt whose slots are free.
    pub(super) fn launch_ready(&mut self) {
        if !self.is_open() {
            return;
        }
        let (slots, effects) = (&mut self.slots, &mut self.effects);
        for life in &mut self.lives {
            let waits = matches!(life.phase, Phase::Waiting { .. });
            if waits && slots.are_free(&life.on, life.tier) {
                slots.take(life.key, &life.on, life.tier);
                life.phase = Phase::Launching;
                let (key, moving) = (life.key, life.moving);
                effects.push(Effect::Launch { key, seats: slots.seats(key, &life.on), moving });
            }
        }
    }

    /// Whoever has its slot does not die.
    pub(super) fn never_had_its_slot(&mut self, key: Key) {
        self.end(key, End::Refused);
    }

    /// A launch has come to its end, which is nobody's business while the VM is frozen.
    pub(super) fn hear_launched(&mut self, key: Key, result: Result<Came, LaunchError>) {
        let given_up = self.seen(key).is_some_and(|life| life.reported);
        if self.is_frozen() && !given_up {
            self.held.push((key, result));
        } else {
            self.launched(key, result);
        }
    }

    /// Gives up the launch of an attempt whose end has been reported.
    pub(super) fn give_up_launch(&mut self, key: Key) {
        self.push_effect(Effect::Revoke(key));
        if let Some(place) = self.held.iter().position(|(held, _)| *held == key) {
            let (_, result) = self.held.remove(place);
            self.launched(key, result);
        }
    }

    pub(super) fn launched(&mut self, key: Key, result: Result<Came, LaunchError>) {
        let Some(life) = self.life(key) else { return };
        if life.phase != Phase::Launching {
            return;
        }
        match result {
            Ok(Came::Alive) if life.reported => {
                // What was given up and has come to life all the same is killed.
                self.push_effect(Effect::Bury(key));
                self.kill(key);
            }
            _ if life.reported => self.is_gone(key),
            Ok(Came::Alive) => {
                life.phase = Phase::Running;
                let stop = life.stop.take();
                self.push_effect(Effect::Began(key));
                match stop {
                    Some(keep) => self.stop(key, keep),
                    None => {
                        self.perhaps_leave(key);
                        self.ask_again(key);
                    }
                }
            }
            Ok(Came::Over(result)) => {
                life.phase = Phase::Running;
                self.push_effect(Effect::Began(key));
                self.exited(key, result);
            }
            // The checkpoint is of no use: it begins again where it should go on.
            Err(LaunchError { why, .. }) if std::mem::take(&mut life.moving) => {
                life.phase = Phase::Waiting { until: None };
                let stop = life.stop.take();
                self.slots.leave(key);
                self.push_effect(Effect::Anew { key, why });
                match stop {
                    Some(keep) => self.stop(key, keep),
                    None => self.launch_ready(),
                }
            }
            Err(LaunchError { why, image }) => self.end(key, End::Failed { why, image }),
        }
    }
}
