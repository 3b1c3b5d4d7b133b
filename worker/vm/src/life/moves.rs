//! Moves of jobs to other vCPUs, and promotions of attempts to the foreground.

use dormouse_units::Tier;

use super::{AttemptOutcome, AttemptPhase, AttemptTable, DepartureOutcome, Key, VmEffect};

impl AttemptTable {
    /// Promotes an attempt to the foreground of the vCPUs that it has or will have.
    pub(super) fn promote_attempt(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        life.tier = Tier::Foreground;
        if matches!(life.phase, AttemptPhase::Waiting { .. }) {
            return self.launch_ready();
        }
        match self.slots.promote_task(key) {
            Ok(slots) => self.push_effect(VmEffect::PromoteSlots { key, slots }),
            Err(vcpu) => self.push_effect(VmEffect::PromotionRefused { vcpu }),
        }
    }

    /// Moves a job to the foreground of the vCPUs `on`.
    pub(super) fn move_to(&mut self, key: Key, on: Vec<u32>) {
        let Some(life) = self.life_mut(key) else { return };
        match life.phase {
            AttemptPhase::Waiting { .. } => {
                (life.on, life.tier) = (on.clone(), Tier::Foreground);
                self.push_effect(VmEffect::Redirect { key, on });
                self.launch_ready();
            }
            AttemptPhase::Launching => life.later = Some(on),
            AttemptPhase::Running => {
                life.later = Some(on);
                self.perhaps_leave(key);
            }
            // After its checkpoint.
            AttemptPhase::Dumping if life.later.is_none() && life.stop.is_none() => {
                life.later = Some(on);
            }
            // It is under way, or nothing is left to be moved.
            AttemptPhase::Dumping | AttemptPhase::Dying { .. } | AttemptPhase::Gone => {}
            AttemptPhase::Early => {
                self.push_effect(VmEffect::StopAwaiting(key));
                self.end_attempt(key, AttemptOutcome::Finished);
            }
        }
    }

    /// Dumps a job that is to be moved, if that is possible now.
    pub(super) fn perhaps_leave(&mut self, key: Key) {
        let is_open = self.is_open();
        let Some(life) = self.life_mut(key) else { return };
        if is_open && life.later.is_some() && life.phase == AttemptPhase::Running {
            life.phase = AttemptPhase::Dumping;
            self.push_effect(VmEffect::Leave(key));
        }
    }

    pub(super) fn places_left(&mut self, key: Key, left: DepartureOutcome) {
        let Some(life) = self.life_mut(key).filter(|life| life.phase == AttemptPhase::Dumping)
        else {
            return;
        };
        life.phase = AttemptPhase::Running;
        match left {
            DepartureOutcome::Overtaken => {
                match life.stop.take() {
                    Some(keep) => {
                        life.later = None;
                        self.stop_attempt(key, keep);
                    }
                    None => self.push_effect(VmEffect::MoveDelayed(key)),
                }
                // Its end, if it came meanwhile, was put off.
                self.process_ended(key);
                self.perhaps_leave(key);
            }
            DepartureOutcome::Ended(Ok(())) => self.end_attempt(key, AttemptOutcome::Finished),
            DepartureOutcome::Ended(Err(why)) => {
                self.end_attempt(key, AttemptOutcome::Failed { why, image: false });
            }
            DepartureOutcome::Gone { kept } => self.goes_elsewhere(key, kept),
        }
        self.perhaps_let_go();
    }

    /// Launches a job, whose processes are gone from its earlier vCPUs, on the vCPUs to which it is moved; `kept`: its checkpoint
    /// can be restored.
    fn goes_elsewhere(&mut self, key: Key, kept: bool) {
        self.vacate_slots(key);
        // It does not stand still for its last checkpoint any more.
        self.goes_on(key);
        let Some(life) = self.life_mut(key) else { return };
        let on = life.later.take().unwrap_or_default();
        (life.phase, life.tier) = (AttemptPhase::Waiting { until: None }, Tier::Foreground);
        (life.on, life.moving) = (on.clone(), kept);
        let stop = life.stop.take();
        self.push_effect(VmEffect::LeftPlaces { key, on });
        match stop {
            Some(keep) => self.stop_attempt(key, keep),
            None => self.launch_ready(),
        }
    }
}
