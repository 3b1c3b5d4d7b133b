//! Freezing a VM, thawing it, and its end.

use std::time::Duration;

use super::{AttemptTable, Effect, Event, Key, Phase, attempt::Life};

/// What a VM is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// A freeze waits for CRIU to let a task go, which it does in a moment; frozen, it would not.
    Shut,
    Freezing,
    Frozen {
        since: Duration,
    },
    Thawing {
        /// Since when it is frozen; `None` where it is not.
        since: Option<Duration>,
    },
    /// The VM is destroyed. Of what is still being done to it the end is heard.
    Ending,
    /// Nothing is left of it.
    Over,
}

impl AttemptTable {
    /// Whether a command may come: none while a freeze waits.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.state, State::Up | State::Frozen { .. })
    }

    /// Whether it is frozen, or just being thawed.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        matches!(self.state, State::Frozen { .. } | State::Thawing { since: Some(_) })
    }

    /// Whether nothing is left of the VM.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending | State::Over)
    }

    /// Whether things may begin.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Up | State::Thawing { since: None })
    }

    pub(super) fn freeze(&mut self) {
        if self.is_frozen() {
            return self.push_effect(Effect::IsFrozen);
        }
        self.state = State::Shut;
        self.push_effect(Effect::Shut);
    }

    /// A dump has come to its end, for which a freeze may wait.
    pub(super) fn perhaps_let_go(&mut self) {
        if self.state == State::Shut {
            self.push_effect(Effect::Shut);
        }
    }

    pub(super) fn let_go(&mut self) {
        if self.state == State::Shut {
            self.state = State::Freezing;
            self.push_effect(Effect::Freeze);
        }
    }

    pub(super) fn frozen(&mut self, now: Duration) {
        if self.state == State::Freezing {
            self.state = State::Frozen { since: now };
            for key in self.keys() {
                self.is_as_good_as_gone(key);
            }
        }
    }

    /// A freeze that failed leaves it thawed.
    pub(super) fn not_frozen(&mut self) {
        if self.state == State::Freezing {
            self.state = State::Up;
            self.go_on();
        }
    }

    pub(super) fn thaw(&mut self) {
        let since = match self.state {
            State::Frozen { since } => Some(since),
            _ => None,
        };
        self.state = State::Thawing { since };
        self.push_effect(Effect::Thaw);
    }

    pub(super) fn thawed(&mut self, now: Duration) {
        let State::Thawing { since } = self.state else { return };
        self.state = State::Up;
        // Frozen time is nobody's.
        let stood = since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        for life in &mut self.lives {
            if let Phase::Waiting { until: Some(due) } | Phase::Dying { by: Some(due) } =
                &mut life.phase
            {
                *due += stood;
            }
        }
        for (key, result) in std::mem::take(&mut self.held) {
            self.launched(key, result);
        }
        self.go_on();
    }

    pub(super) fn not_thawed(&mut self) {
        if let State::Thawing { since } = self.state {
            self.state = since.map_or(State::Up, |since| State::Frozen { since });
        }
    }

    /// What was put off for a freeze is not put off any more.
    fn go_on(&mut self) {
        self.launch_ready();
        for key in self.keys() {
            self.ask_again(key);
            self.perhaps_leave(key);
        }
    }

    /// Kills all that runs, whatever is being done to it. What is being done comes to its end by
    /// itself, since there is nothing left to work on.
    pub(super) fn destroy(&mut self) {
        self.state = State::Ending;
        self.push_effect(Effect::KillAll);
        for (key, _) in std::mem::take(&mut self.held) {
            self.forget(key);
        }
        for key in self.keys() {
            if !self.seen(key).is_some_and(Life::is_busy) {
                self.forget(key);
            }
        }
        self.perhaps_over();
    }

    /// What is heard of a VM that is gone.
    pub(super) fn ending(&mut self, event: Event) {
        if let Event::Launched(key, _) | Event::Dumped(key, _) | Event::Left(key, _) = event {
            self.forget(key);
            self.perhaps_over();
        }
    }

    fn forget(&mut self, key: Key) {
        if self.seen(key).is_some() {
            self.lives.retain(|life| life.key != key);
            self.slots.leave(key);
            self.push_effect(Effect::Forget(key));
        }
    }

    fn perhaps_over(&mut self) {
        if self.state == State::Ending && self.lives.is_empty() {
            self.state = State::Over;
            self.push_effect(Effect::Remove);
        }
    }
}
