//! Jobs that go elsewhere, and attempts that come to the foreground.

use dormouse_units::Tier;

use super::{AttemptTable, Effect, End, Key, Left, Phase};

impl AttemptTable {
    /// Brings an attempt to the foreground where it is, or is to be.
    pub(super) fn promote(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        life.tier = Tier::Foreground;
        if matches!(life.phase, Phase::Waiting { .. }) {
            return self.launch_ready();
        }
        match self.slots.promote(key) {
            Ok(slots) => self.push_effect(Effect::Turn { key, slots }),
            Err(vcpu) => self.push_effect(Effect::NotTurned { vcpu }),
        }
    }

    /// A job is to go on in the foreground of `on`.
    pub(super) fn move_to(&mut self, key: Key, on: Vec<u32>) {
        let Some(life) = self.life(key) else { return };
        match life.phase {
            Phase::Waiting { .. } => {
                (life.on, life.tier) = (on.clone(), Tier::Foreground);
                self.push_effect(Effect::Redirect { key, on });
                self.launch_ready();
            }
            Phase::Launching => life.later = Some(on),
            Phase::Running => {
                life.later = Some(on);
                self.perhaps_leave(key);
            }
            // After its checkpoint.
            Phase::Dumping if life.later.is_none() && life.stop.is_none() => life.later = Some(on),
            // It is under way, or nothing is left to be moved.
            Phase::Dumping | Phase::Dying { .. } | Phase::Gone => {}
            Phase::Early => {
                self.push_effect(Effect::Hurry(key));
                self.end(key, End::Finished);
            }
        }
    }

    /// Dumps a job that is to go elsewhere, if that can be now.
    pub(super) fn perhaps_leave(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life(key) else { return };
        if is_open && life.later.is_some() && life.phase == Phase::Running {
            life.phase = Phase::Dumping;
            self.push_effect(Effect::Leave(key));
        }
    }

    pub(super) fn left(&mut self, key: Key, left: Left) {
        let Some(life) = self.life(key).filter(|life| life.phase == Phase::Dumping) else {
            return;
        };
        life.phase = Phase::Running;
        match left {
            Left::Overtaken => {
                match life.stop.take() {
                    Some(keep) => {
                        life.later = None;
                        self.stop(key, keep);
                    }
                    None => self.push_effect(Effect::StaysAWhile(key)),
                }
                // Its end, if it came meanwhile, was put off.
                self.process_ended(key);
                self.perhaps_leave(key);
            }
            Left::Ended(Ok(())) => self.end(key, End::Finished),
            Left::Ended(Err(why)) => self.end(key, End::Failed { why, image: false }),
            Left::Gone { kept } => self.goes_elsewhere(key, kept),
        }
        self.perhaps_let_go();
    }

    /// A job whose processes are gone is to go on where it was told to.
    fn goes_elsewhere(&mut self, key: Key, kept: bool) {
        self.vacate(key);
        // It does not stand still for its last checkpoint any more.
        self.goes_on(key);
        let Some(life) = self.life(key) else { return };
        let on = life.later.take().unwrap_or_default();
        (life.phase, life.tier) = (Phase::Waiting { until: None }, Tier::Foreground);
        (life.on, life.moving) = (on.clone(), kept);
        let stop = life.stop.take();
        self.push_effect(Effect::GoneFrom { key, on });
        match stop {
            Some(keep) => self.stop(key, keep),
            None => self.launch_ready(),
        }
    }
}
