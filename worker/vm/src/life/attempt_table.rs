//! All attempts on one VM, and the state of the VM.

use std::time::Duration;

use super::{
    AttemptPhase, Key, VmEffect, VmEvent, VmSlots,
    attempt::AttemptLife,
    event::{BirthOutcome, LaunchFailure},
    vm::VmLifecycle,
};

/// What holds for all attempts of a VM.
#[derive(Clone, Copy, Debug)]
pub struct AttemptLimits {
    /// The time that a killed process may take to be gone. Time in which its VM is frozen is nobody's.
    pub kill: Duration,
    /// Whether tasks can be checkpointed here.
    pub checkpoints: bool,
}

/// The attempts on one VM, in the order they came.
#[derive(Debug)]
pub struct AttemptTable {
    pub(super) limits: AttemptLimits,
    pub(super) state: VmLifecycle,
    pub(super) slots: VmSlots,
    pub(super) lives: Vec<AttemptLife>,
    /// Launches that came to their end while the VM was frozen: heard at the thaw.
    pub(super) held: Vec<(Key, Result<BirthOutcome, LaunchFailure>)>,
    pub(super) effects: Vec<VmEffect>,
}

impl AttemptTable {
    /// A VM on which there is nobody yet.
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

    /// Hears of an event, `now` after the VM was made: what is to be done.
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

    /// The time at which something is due by itself, if it is. On a frozen VM nothing is.
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
                    self.never_had_its_slot(key)
                }
                Some(AttemptPhase::Dying { by }) if is_due(by) => self.outlives_its_kill(key),
                _ => {}
            }
        }
    }

    /// Who is where.
    #[must_use]
    pub const fn vm_slots(&self) -> &VmSlots {
        &self.slots
    }

    /// The stage of an attempt's life, if it is here.
    #[must_use]
    pub fn attempt_phase(&self, key: Key) -> Option<AttemptPhase> {
        self.find_life(key).map(|life| life.phase)
    }

    /// The attempt's process is there, and nothing is being done to it.
    #[must_use]
    pub fn is_running(&self, key: Key) -> bool {
        self.attempt_phase(key) == Some(AttemptPhase::Running)
    }

    /// Something is being done to it elsewhere.
    #[must_use]
    pub fn is_busy(&self, key: Key) -> bool {
        self.find_life(key).is_some_and(AttemptLife::is_busy)
    }

    /// Whether the attempt is dead, or has been killed.
    #[must_use]
    pub fn is_dead(&self, key: Key) -> bool {
        matches!(self.attempt_phase(key), Some(AttemptPhase::Dying { .. } | AttemptPhase::Gone))
    }

    /// Whether the attempt is to be stopped, or is being.
    #[must_use]
    pub fn is_stopped(&self, key: Key) -> bool {
        self.find_life(key).is_some_and(|life| life.stop.is_some())
    }

    /// Whether a checkpoint is being taken, or waits for CRIU's turn.
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
