//! The effects that a VM's owner has yet to carry out, in their order.

use std::collections::VecDeque;

use dormouse_vm::life::VmEffect;

/// Queue of effects of which one is carried out at a time. Effects that result from an effect are carried out before
/// the effects that were queued after it.
///
/// Use: `add_effects`; then, if `begin_effects` allows it, `take_next` until there is none, and `end_effects`.
#[derive(Debug, Default)]
pub(crate) struct EffectQueue {
    waiting: VecDeque<VmEffect>,
    /// Effects that follow from the effect under way.
    fresh: Vec<VmEffect>,
    is_busy: bool,
}

impl EffectQueue {
    /// Adds effects, which are carried out before all effects that already wait.
    pub(crate) fn add_effects(&mut self, effects: impl IntoIterator<Item = VmEffect>) {
        self.fresh.extend(effects);
    }

    /// Begins to carry out effects; false if that is under way already.
    pub(crate) fn begin_effects(&mut self) -> bool {
        !std::mem::replace(&mut self.is_busy, true)
    }

    /// Records that no effect is under way any more.
    pub(crate) fn end_effects(&mut self) {
        self.is_busy = false;
    }

    /// Removes and returns the next effect; `None`: the queue is empty.
    pub(crate) fn take_next(&mut self) -> Option<VmEffect> {
        for effect in self.fresh.drain(..).rev() {
            self.waiting.push_front(effect);
        }
        self.waiting.pop_front()
    }

    /// Puts an effect back as the next one.
    pub(crate) fn put_back(&mut self, effect: VmEffect) {
        self.waiting.push_front(effect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_effect_leads_to_comes_before_what_was_to_follow_it() {
        let mut queue = EffectQueue::default();
        queue.add_effects([VmEffect::Freeze, VmEffect::Remove]);
        assert!(queue.begin_effects() && !queue.begin_effects());
        assert_eq!(queue.take_next(), Some(VmEffect::Freeze));
        queue.add_effects([VmEffect::KillAll]);
        queue.add_effects([VmEffect::Thaw]);
        assert_eq!(queue.take_next(), Some(VmEffect::KillAll));
        queue.put_back(VmEffect::KillAll);
        let rest: Vec<_> = std::iter::from_fn(|| queue.take_next()).collect();
        assert_eq!(rest, [VmEffect::KillAll, VmEffect::Thaw, VmEffect::Remove]);
        queue.end_effects();
        assert!(queue.begin_effects());
    }
}
