//! Processes that are gone, and attempts that are over.

use super::{AttemptOutcome, AttemptPhase, AttemptTable, Key, VmEffect};

impl AttemptTable {
    pub(super) fn process_ended(&mut self, key: Key) {
        match self.attempt_phase(key) {
            // The end of the dump comes first.
            None | Some(AttemptPhase::Dumping | AttemptPhase::Gone | AttemptPhase::Early) => {}
            Some(AttemptPhase::Dying { .. }) => self.push_effect(VmEffect::Reap(key)),
            Some(AttemptPhase::Running) => self.push_effect(VmEffect::Judge(key)),
            // It has none.
            Some(AttemptPhase::Waiting { .. } | AttemptPhase::Launching) => {}
        }
    }

    /// Records that a killed attempt has no process any more.
    pub(super) fn is_gone(&mut self, key: Key) {
        let Some(life) = self.life_mut(key) else { return };
        if !matches!(life.phase, AttemptPhase::Dying { .. } | AttemptPhase::Launching) {
            return;
        }
        life.phase = AttemptPhase::Gone;
        self.vacate_slots(key);
        self.launch_ready();
        self.settle_stop(key);
    }

    /// Records that a process has ended by itself.
    pub(super) fn process_exited(&mut self, key: Key, result: Result<(), String>) {
        match (self.attempt_phase(key), result) {
            (Some(AttemptPhase::Running), Ok(())) => self.work_is_done(key),
            (Some(AttemptPhase::Running), Err(why)) => {
                self.end_attempt(key, AttemptOutcome::Failed { why, image: false });
            }
            _ => {}
        }
    }

    /// Frees the slots of an attempt whose processes are gone.
    pub(super) fn vacate_slots(&mut self, key: Key) {
        let seats = self.slots.all_of(key);
        self.slots.leave_slots(key);
        self.push_effect(VmEffect::Vacate { key, seats });
    }

    /// Ends an attempt without a process, and launches the attempts that waited for its slots.
    pub(super) fn end_attempt(&mut self, key: Key, end: AttemptOutcome) {
        let seats = self.slots.all_of(key);
        self.slots.leave_slots(key);
        self.lives.retain(|life| life.key != key);
        self.held.retain(|(held, _)| *held != key);
        self.push_effect(VmEffect::End { key, seats, end });
        self.launch_ready();
    }
}
