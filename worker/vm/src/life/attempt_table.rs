//! All attempts on one VM, and the state of the VM.

use std::time::Duration;

use super::{
    AttemptPhase, Key, VmEffect, VmEvent, VmSlots,
    attempt::AttemptLife,
    event::{BirthOutcome, LaunchFailure},
    vm::VmLifecycle,
};

/// Limits that hold for all attempts of a VM.
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimits {
    /// Time that a killed process may take to disappear, not counting time in which its VM is frozen.
    pub kill: Duration,
    /// True if tasks can be checkpointed on this host.
    pub checkpoints: bool,
}

/// Attempts on one VM in the order of their arrival: a state machine without clock or IO.
///
/// Use: hand every [`VmEvent`] to [`AttemptTable::handle_event`], and carry out the returned effects in order; hand in
/// [`VmEvent::Tick`] at the time that [`AttemptTable::next_at`] returns.
#[derive(Debug)]
pub struct AttemptTable {
    pub(super) limits: AttemptLimits,
    pub(super) state: VmLifecycle,
    pub(super) slots: VmSlots,
    pub(super) lives: Vec<AttemptLife>,
    /// Results of launches that ended while the VM was frozen; they are handled when the VM thaws.
    pub(super) held: Vec<(Key, Result<BirthOutcome, LaunchFailure>)>,
    pub(super) effects: Vec<VmEffect>,
}

impl AttemptTable {
    /// Makes the table of a VM without attempts.
    #[must_use]
    pub fn new(vcpus: u32, limits: AttemptLimits) -> Self {
        Self {
            limits,
            state: VmLifecycle::Up,
            slots: VmSlots::new(vcpus),
            lives: Vec::new(),
            held: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Handles an event, `now` after the VM's creation; returns what is to be done, in order.
    pub fn handle_event(&mut self, now: Duration, event: VmEvent) -> Vec<VmEffect> {
        match event {
            _ if self.is_ending() => self.handle_while_ending(event),
            VmEvent::Start(start) => self.start_attempt(now, start),
            VmEvent::Stop { key, keep } => self.stop_attempt(key, keep),
            VmEvent::Promote(key) => self.promote_attempt(key),
            VmEvent::Move { key, on } => self.move_to(key, on),
            VmEvent::Freeze => self.freeze_vm(),
            VmEvent::Thaw => self.thaw_vm(),
            VmEvent::Destroy => self.destroy_vm(),
            VmEvent::CheckpointDue(key) => self.checkpoint_is_due(key),
            VmEvent::Tick => self.check_deadlines(now),
            VmEvent::Launched(key, result) => self.hear_launched(key, result),
            VmEvent::Turn(key) => self.dump_turn(key),
            VmEvent::Dumped(key, dumped) => self.dump_ended(key, dumped),
            VmEvent::Stored { key, number, ok } => self.checkpoint_stored(key, number, ok),
            VmEvent::Left(key, left) => self.places_left(key, left),
            VmEvent::Resumed(key) => self.goes_on(key),
            VmEvent::ProcessEnded(key) => self.process_ended(key),
            VmEvent::Gone(key) => self.is_gone(key),
            VmEvent::Exited(key, result) => self.process_exited(key, result),
            VmEvent::TimeHasCome(key) => self.time_has_come(key),
            VmEvent::Hangs(key, why) => self.attempt_hangs(now, key, why),
            VmEvent::CriuIdle => self.let_go(),
            VmEvent::Frozen => self.vm_frozen(now),
            VmEvent::NotFrozen => self.not_frozen(),
            VmEvent::Thawed => self.vm_thawed(now),
            VmEvent::NotThawed => self.not_thawed(),
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns the time after the VM's creation at which a [`VmEvent::Tick`] must be handed in; `None` while the VM is frozen or
    /// nothing has a deadline.
    #[must_use]
    pub fn next_at(&self) -> Option<Duration> {
        if self.is_frozen() {
            return None;
        }
        let dues = self.lives.iter().filter_map(|life| match life.phase {
            AttemptPhase::Waiting { until: due } | AttemptPhase::Dying { by: due } => due,
            _ => None,
        });
        dues.min()
    }

    fn check_deadlines(&mut self, now: Duration) {
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        for key in self.attempt_keys() {
            match self.attempt_phase(key) {
                Some(AttemptPhase::Waiting { until }) if is_due(until) => {
                    self.never_had_its_slot(key);
                }
                Some(AttemptPhase::Dying { by }) if is_due(by) => self.outlives_its_kill(key),
                _ => {}
            }
        }
    }

    /// Returns the VM's slots with their attempts.
    #[must_use]
    pub const fn vm_slots(&self) -> &VmSlots {
        &self.slots
    }

    /// Returns the stage of an attempt; `None`: it isn't on this VM.
    #[must_use]
    pub fn attempt_phase(&self, key: Key) -> Option<AttemptPhase> {
        self.find_life(key).map(|life| life.phase)
    }

    /// Returns whether an attempt's process exists and no work on it is under way.
    #[must_use]
    pub fn is_running(&self, key: Key) -> bool {
        self.attempt_phase(key) == Some(AttemptPhase::Running)
    }

    /// Returns whether a launch or a dump of an attempt is under way in a different thread.
    #[must_use]
    pub fn is_busy(&self, key: Key) -> bool {
        self.find_life(key).is_some_and(AttemptLife::is_busy)
    }

    /// Returns whether an attempt is dead or has been killed.
    #[must_use]
    pub fn is_dead(&self, key: Key) -> bool {
        matches!(self.attempt_phase(key), Some(AttemptPhase::Dying { .. } | AttemptPhase::Gone))
    }

    /// Returns whether an attempt is to be stopped or is being stopped.
    #[must_use]
    pub fn is_stopped(&self, key: Key) -> bool {
        self.find_life(key).is_some_and(|life| life.stop.is_some())
    }

    /// Returns whether a checkpoint of an attempt is being taken or queued for CRIU.
    #[must_use]
    pub fn is_being_checkpointed(&self, key: Key) -> bool {
        self.find_life(key).is_some_and(|life| life.asked || life.phase == AttemptPhase::Dumping)
    }

    pub(super) fn attempt_keys(&self) -> Vec<Key> {
        self.lives.iter().map(|life| life.key).collect()
    }

    pub(super) fn find_life(&self, key: Key) -> Option<&AttemptLife> {
        self.lives.iter().find(|life| life.key == key)
    }

    pub(super) fn life_mut(&mut self, key: Key) -> Option<&mut AttemptLife> {
        self.lives.iter_mut().find(|life| life.key == key)
    }

    pub(super) fn push_effect(&mut self, effect: VmEffect) {
        self.effects.push(effect);
    }
}
