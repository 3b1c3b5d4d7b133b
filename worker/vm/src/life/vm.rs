//! Freezing a VM, thawing it, and its end.

use std::time::Duration;

use super::{AttemptPhase, AttemptTable, Key, VmEffect, VmEvent, attempt::AttemptLife};

/// What a VM is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VmLifecycle {
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
        matches!(self.state, VmLifecycle::Up | VmLifecycle::Frozen { .. })
    }

    /// Whether it is frozen, or just being thawed.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        matches!(self.state, VmLifecycle::Frozen { .. } | VmLifecycle::Thawing { since: Some(_) })
    }

    /// Whether nothing is left of the VM.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, VmLifecycle::Over)
    }

    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.state, VmLifecycle::Ending | VmLifecycle::Over)
    }

    /// Whether things may begin.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, VmLifecycle::Up | VmLifecycle::Thawing { since: None })
    }

    pub(super) fn freeze_vm(&mut self) {
        if self.is_frozen() {
            return self.push_effect(VmEffect::IsFrozen);
        }
        self.state = VmLifecycle::Shut;
        self.push_effect(VmEffect::Shut);
    }

    /// A dump has come to its end, for which a freeze may wait.
    pub(super) fn perhaps_let_go(&mut self) {
        if self.state == VmLifecycle::Shut {
            self.push_effect(VmEffect::Shut);
        }
    }

    pub(super) fn let_go(&mut self) {
        if self.state == VmLifecycle::Shut {
            self.state = VmLifecycle::Freezing;
            self.push_effect(VmEffect::Freeze);
        }
    }

    pub(super) fn vm_frozen(&mut self, now: Duration) {
        if self.state == VmLifecycle::Freezing {
            self.state = VmLifecycle::Frozen { since: now };
            for key in self.attempt_keys() {
                self.is_as_good_as_gone(key);
            }
        }
    }

    /// A freeze that failed leaves it thawed.
    pub(super) fn not_frozen(&mut self) {
        if self.state == VmLifecycle::Freezing {
            self.state = VmLifecycle::Up;
            self.go_on();
        }
    }

    pub(super) fn thaw_vm(&mut self) {
        let since = match self.state {
            VmLifecycle::Frozen { since } => Some(since),
            _ => None,
        };
        self.state = VmLifecycle::Thawing { since };
        self.push_effect(VmEffect::Thaw);
    }

    pub(super) fn vm_thawed(&mut self, now: Duration) {
        let VmLifecycle::Thawing { since } = self.state else { return };
        self.state = VmLifecycle::Up;
        // Frozen time is nobody's.
        let stood = since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        for life in &mut self.lives {
            if let AttemptPhase::Waiting { until: Some(due) }
            | AttemptPhase::Dying { by: Some(due) } = &mut life.phase
            {
                *due += stood;
            }
        }
        for (key, result) in std::mem::take(&mut self.held) {
            self.launch_ended(key, result);
        }
        self.go_on();
    }

    pub(super) fn not_thawed(&mut self) {
        if let VmLifecycle::Thawing { since } = self.state {
            self.state = since.map_or(VmLifecycle::Up, |since| VmLifecycle::Frozen { since });
        }
    }

    /// What was put off for a freeze is not put off any more.
    fn go_on(&mut self) {
        self.launch_ready();
        for key in self.attempt_keys() {
            self.ask_again(key);
            self.perhaps_leave(key);
        }
    }

    /// Kills all that runs, whatever is being done to it. What is being done comes to its end by
    /// itself, since there is nothing left to work on.
    pub(super) fn destroy_vm(&mut self) {
        self.state = VmLifecycle::Ending;
        self.push_effect(VmEffect::KillAll);
        for (key, _) in std::mem::take(&mut self.held) {
            self.forget_attempt(key);
        }
        for key in self.attempt_keys() {
            if !self.find_life(key).is_some_and(AttemptLife::is_busy) {
                self.forget_attempt(key);
            }
        }
        self.perhaps_over();
    }

    /// What is heard of a VM that is gone.
    pub(super) fn handle_while_ending(&mut self, event: VmEvent) {
        if let VmEvent::Launched(key, _) | VmEvent::Dumped(key, _) | VmEvent::Left(key, _) = event {
            self.forget_attempt(key);
            self.perhaps_over();
        }
    }

    fn forget_attempt(&mut self, key: Key) {
        if self.find_life(key).is_some() {
            self.lives.retain(|life| life.key != key);
            self.slots.leave_slots(key);
            self.push_effect(VmEffect::Forget(key));
        }
    }

    fn perhaps_over(&mut self) {
        if self.state == VmLifecycle::Ending && self.lives.is_empty() {
            self.state = VmLifecycle::Over;
            self.push_effect(VmEffect::Remove);
        }
    }
}
