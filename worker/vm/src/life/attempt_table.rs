//! All attempts on one VM, and the state of the VM.

use std::time::Duration;

use super::{
    Effect, Event, Key, Phase, Slots,
    attempt::Life,
    event::{Came, LaunchError},
    vm::State,
};

/// What holds for all attempts of a VM.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time that a killed process may take to be gone. Time in which its VM is frozen is nobody's.
    pub kill: Duration,
    /// Whether tasks can be checkpointed here.
    pub checkpoints: bool,
}

/// The attempts on one VM, in the order they came.
#[derive(Debug)]
pub struct AttemptTable {
    pub(super) limits: Limits,
    pub(super) state: State,
    pub(super) slots: Slots,
    pub(super) lives: Vec<Life>,
    /// Launches that came to their end while the VM was frozen: heard at the thaw.
    pub(super) held: Vec<(Key, Result<Came, LaunchError>)>,
    pub(super) effects: Vec<Effect>,
}

impl AttemptTable {
    /// A VM on which there is nobody yet.
    #[must_use]
    pub fn new(vcpus: u32, limits: Limits) -> Self {
        Self {
            limits,
            state: State::Up,
            slots: Slots::new(vcpus),
            lives: Vec::new(),
            held: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Hears of an event, `now` after the VM was made: what is to be done.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Effect> {
        match event {
            _ if self.is_ending() => self.ending(event),
            Event::Start(start) => self.start(now, start),
            Event::Stop { key, keep } => self.stop(key, keep),
            Event::Promote(key) => self.promote(key),
            Event::Move { key, on } => self.move_to(key, on),
            Event::Freeze => self.freeze(),
            Event::Thaw => self.thaw(),
            Event::Destroy => self.destroy(),
            Event::CheckpointDue(key) => self.checkpoint_is_due(key),
            Event::Tick => self.tick(now),
            Event::Launched(key, result) => self.hear_launched(key, result),
            Event::Turn(key) => self.turn(key),
            Event::Dumped(key, dumped) => self.dumped(key, dumped),
            Event::Stored { key, number, ok } => self.stored(key, number, ok),
            Event::Left(key, left) => self.left(key, left),
            Event::GoesOn(key) => self.goes_on(key),
            Event::ProcessEnded(key) => self.process_ended(key),
            Event::Gone(key) => self.is_gone(key),
            Event::Exited(key, result) => self.exited(key, result),
            Event::TimeHasCome(key) => self.time_has_come(key),
            Event::Hangs(key, why) => self.hangs(now, key, why),
            Event::LetGo => self.let_go(),
            Event::Frozen => self.frozen(now),
            Event::NotFrozen => self.not_frozen(),
            Event::Thawed => self.thawed(now),
            Event::NotThawed => self.not_thawed(),
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
            Phase::Waiting { until: due } | Phase::Dying { by: due } => due,
            _ => None,
        });
        dues.min()
    }

    fn tick(&mut self, now: Duration) {
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        for key in self.keys() {
            match self.phase(key) {
                Some(Phase::Waiting { until }) if is_due(until) => self.never_had_its_slot(key),
                Some(Phase::Dying { by }) if is_due(by) => self.outlives_its_kill(key),
                _ => {}
            }
        }
    }

    /// Who is where.
    #[must_use]
    pub const fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The stage of an attempt's life, if it is here.
    #[must_use]
    pub fn phase(&self, key: Key) -> Option<Phase> {
        self.seen(key).map(|life| life.phase)
    }

    /// The attempt's process is there, and nothing is being done to it.
    #[must_use]
    pub fn is_running(&self, key: Key) -> bool {
        self.phase(key) == Some(Phase::Running)
    }

    /// Something is being done to it elsewhere.
    #[must_use]
    pub fn is_busy(&self, key: Key) -> bool {
        self.seen(key).is_some_and(Life::is_busy)
    }

    /// Whether the attempt is dead, or has been killed.
    #[must_use]
    pub fn is_dead(&self, key: Key) -> bool {
        matches!(self.phase(key), Some(Phase::Dying { .. } | Phase::Gone))
    }

    /// Whether the attempt is to be stopped, or is being.
    #[must_use]
    pub fn is_stopped(&self, key: Key) -> bool {
        self.seen(key).is_some_and(|life| life.stop.is_some())
    }

    /// Whether a checkpoint is being taken, or waits for CRIU's turn.
    #[must_use]
    pub fn is_being_checkpointed(&self, key: Key) -> bool {
        self.seen(key).is_some_and(|life| life.asked || life.phase == Phase::Dumping)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.lives.iter().map(|life| life.key).collect()
    }

    pub(super) fn seen(&self, key: Key) -> Option<&Life> {
        self.lives.iter().find(|life| life.key == key)
    }

    pub(super) fn life(&mut self, key: Key) -> Option<&mut Life> {
        self.lives.iter_mut().find(|life| life.key == key)
    }

    pub(super) fn push_effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
