//! Freezing a VM, thawing it, and its end.

use std::time::Duration;

use super::{AttemptPhase, AttemptTable, Key, VmEffect, VmEvent, attempt::AttemptLife};

/// Stage of a VM on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VmLifecycle {
    Up,
    /// The VM is about to freeze: the freeze waits until CRIU releases a task, which takes a moment; in a frozen VM CRIU never
    /// would.
    Shut,
    Freezing,
    Frozen {
        since: Duration,
    },
    Thawing {
        /// Time of the freeze, counted from the VM's creation; `None`: the VM wasn't frozen.
        since: Option<Duration>,
    },
    /// The VM is being destroyed; work under way on it still ends with events.
    Ending,
    /// The VM is destroyed, and nothing is left of it.
    Over,
}

impl AttemptTable {
    /// Returns whether the VM accepts a command now: none is accepted while a freeze waits.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.state, VmLifecycle::Up | VmLifecycle::Frozen { .. })
    }

    /// Returns whether the VM is frozen or being thawed.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        matches!(self.state, VmLifecycle::Frozen { .. } | VmLifecycle::Thawing { since: Some(_) })
    }

    /// Returns whether nothing is left of the VM.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, VmLifecycle::Over)
    }

    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.state, VmLifecycle::Ending | VmLifecycle::Over)
    }

    /// Returns whether launches and dumps may begin on the VM, as it neither freezes nor ends.
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

    /// Continues with a freeze, if there is one that waits for the end of a dump.
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

    /// Records that a freeze failed, so that the VM is thawed.
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

    /// Continues with the launches, checkpoints and moves that a freeze has put off.
    fn go_on(&mut self) {
        self.launch_ready();
        for key in self.attempt_keys() {
            self.ask_again(key);
            self.perhaps_leave(key);
        }
    }

    /// Kills all attempts on the VM, whatever work on them is under way. Such work ends soon, since the attempt's process is gone.
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

    /// Handles an event of a VM that is being destroyed.
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
