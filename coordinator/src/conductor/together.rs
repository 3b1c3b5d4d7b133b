//! VMs that one act of the provider hits are heard of in the order in which it named them.
//!
//! They freeze or thaw within some milliseconds of each other, in whatever order their workers'
//! threads come to it. A scheduler that heard of them in that order would decide by chance what
//! the same scheduler, beside modelled machines, decides by rule.

use std::collections::VecDeque;

use dormouse_cloud::Action;
use dormouse_engine::{Effect, Event, Report, Step};
use dormouse_units::VmId;

/// The reports of acts that are under way.
#[derive(Debug, Default)]
pub(super) struct Together {
    acts: Vec<Act>,
}

#[derive(Debug)]
struct Act {
    action: Action,
    /// The VMs not heard of yet and, of those that came before their turn, their reports.
    waiting: VecDeque<(VmId, Option<Event>)>,
}

impl Together {
    /// Takes in a step: what it gives back must be heard next.
    #[must_use]
    pub(super) fn see(&mut self, step: &Step) -> Vec<Event> {
        let mut free = Vec::new();
        for effect in &step.effects {
            match effect {
                Effect::Interrupted { action, vms, .. }
                    if vms.len() > 1 && *action != Action::Preempt =>
                {
                    let waiting = vms.iter().map(|vm| (*vm, None)).collect();
                    self.acts.push(Act { action: *action, waiting });
                }
                // It will not be heard of again.
                Effect::VmEnded { vm, .. } => {
                    for act in &mut self.acts {
                        act.waiting.retain(|(waiting, _)| waiting != vm);
                        free.extend(act.free());
                    }
                }
                _ => {}
            }
        }
        self.acts.retain(|act| !act.waiting.is_empty());
        free
    }

    /// A report that has come: what must be heard now, this one included if it is its turn.
    #[must_use]
    pub(super) fn order(&mut self, event: Event) -> Vec<Event> {
        let action = match &event {
            Event::Machine { report: Report::VmFrozen { vm, .. }, .. } => (Action::Hibernate, *vm),
            Event::Machine { report: Report::VmThawed { vm, .. }, .. } => (Action::Resume, *vm),
            _ => return vec![event],
        };
        let waits = |act: &&mut Act| {
            act.action == action.0 && act.waiting.iter().any(|(vm, _)| *vm == action.1)
        };
        let Some(act) = self.acts.iter_mut().find(waits) else { return vec![event] };
        if let Some((_, place)) = act.waiting.iter_mut().find(|(vm, _)| *vm == action.1) {
            *place = Some(event);
        }
        let free = act.free();
        self.acts.retain(|act| !act.waiting.is_empty());
        free
    }
}

impl Act {
    /// The reports whose turn it is.
    fn free(&mut self) -> Vec<Event> {
        let mut free = Vec::new();
        while self.waiting.front().is_some_and(|(_, report)| report.is_some()) {
            free.extend(self.waiting.pop_front().and_then(|(_, report)| report));
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::Target;
    use dormouse_engine::VmEnd;
    use dormouse_units::{HostId, Money, Time};

    use super::*;

    fn step(effects: Vec<Effect>) -> Step {
        let (notices, decisions) = (Vec::new(), Vec::new());
        Step { seq: 0, at: Time::ZERO, event: Event::Tick, notices, decisions, effects }
    }

    fn hit(action: Action, vms: &[u32]) -> Step {
        let vms = vms.iter().copied().map(VmId::new).collect();
        let (asked, target) = (Time::ZERO, Target::Vm(VmId::new(9)));
        step(vec![Effect::Interrupted { asked, action, target, vms }])
    }

    fn frozen(vm: u32) -> Event {
        let report = Report::VmFrozen { vm: VmId::new(vm), real_took_us: 1 };
        Event::Machine { host: HostId::new(0), report }
    }

    fn thawed(vm: u32) -> Event {
        let report = Report::VmThawed { vm: VmId::new(vm), real_took_us: 1 };
        Event::Machine { host: HostId::new(0), report }
    }

    #[test]
    fn who_comes_before_its_turn_waits() {
        let mut together = Together::default();
        assert_eq!(together.see(&hit(Action::Hibernate, &[3, 4, 7])), []);
        assert_eq!(together.order(frozen(7)), []);
        assert_eq!(together.order(frozen(5)), [frozen(5)]);
        assert_eq!(together.order(thawed(4)), [thawed(4)]);
        assert_eq!(together.order(frozen(3)), [frozen(3)]);
        assert_eq!(together.order(frozen(4)), [frozen(4), frozen(7)]);
        assert!(together.acts.is_empty());
        // One alone, and one that is taken for good, wait for nobody.
        assert_eq!(together.see(&hit(Action::Hibernate, &[3])), []);
        assert_eq!(together.see(&hit(Action::Preempt, &[3, 4])), []);
        assert!(together.acts.is_empty());
    }

    #[test]
    fn who_ends_is_not_waited_for() {
        let mut together = Together::default();
        assert_eq!(together.see(&hit(Action::Resume, &[3, 4])), []);
        assert_eq!(together.order(thawed(4)), []);
        let (vm, why, cost) = (VmId::new(3), VmEnd::HostLost, Money::ZERO);
        assert_eq!(together.see(&step(vec![Effect::VmEnded { vm, why, cost }])), [thawed(4)]);
        assert!(together.acts.is_empty());
    }
}
