//! Processes that are gone, and attempts that are over.

use super::{AttemptTable, Effect, End, Key, Phase};

impl AttemptTable {
    pub(super) fn process_ended(&mut self, key: Key) {
        match self.phase(key) {
            // The end of the dump comes first.
            None | Some(Phase::Dumping | Phase::Gone | Phase::Early) => {}
            Some(Phase::Dying { .. }) => self.push_effect(Effect::Reap(key)),
            Some(Phase::Running) => self.push_effect(Effect::Judge(key)),
            // It has none.
            Some(Phase::Waiting { .. } | Phase::Launching) => {}
        }
    }

    /// A killed attempt has no process any more.
    pub(super) fn is_gone(&mut self, key: Key) {
        let Some(life) = self.life(key) else { return };
        if !matches!(life.phase, Phase::Dying { .. } | Phase::Launching) {
            return;
        }
        life.phase = Phase::Gone;
        self.vacate(key);
        self.launch_ready();
        self.settle_stop(key);
    }

    /// A process has ended by itself.
    pub(super) fn exited(&mut self, key: Key, result: Result<(), String>) {
        match (self.phase(key), result) {
            (Some(Phase::Running), Ok(())) => self.work_is_done(key),
            (Some(Phase::Running), Err(why)) => self.end(key, End::Failed { why, image: false }),
            _ => {}
        }
    }

    /// The slots of an attempt whose processes are gone are free.
    pub(super) fn vacate(&mut self, key: Key) {
        let seats = self.slots.all_of(key);
        self.slots.leave(key);
        self.push_effect(Effect::Vacate { key, seats });
    }

    /// An attempt without a process is over, and its slots may have been waited for.
    pub(super) fn end(&mut self, key: Key, end: End) {
        let seats = self.slots.all_of(key);
        self.slots.leave(key);
        self.lives.retain(|life| life.key != key);
        self.held.retain(|(held, _)| *held != key);
        self.push_effect(Effect::End { key, seats, end });
        self.launch_ready();
    }
}
