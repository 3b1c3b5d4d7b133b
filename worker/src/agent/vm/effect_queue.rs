//! The effects that a VM's owner has yet to carry out, in their order.

use std::collections::VecDeque;

use dormouse_vm::life::Effect;

/// The effects that wait. One is carried out at a time, and what it leads to comes before what was to follow it.
#[derive(Debug, Default)]
pub(crate) struct EffectQueue {
    waiting: VecDeque<Effect>,
    /// What the effect that is being carried out has led to so far.
    fresh: Vec<Effect>,
    is_busy: bool,
}

impl EffectQueue {
    /// Takes effects in, to be carried out before all that waits.
    pub(crate) fn add(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.fresh.extend(effects);
    }

    /// Begins to carry out what is at hand; `false` if that goes on already.
    pub(crate) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.is_busy, true)
    }

    /// Nothing is being carried out any more.
    pub(crate) fn end(&mut self) {
        self.is_busy = false;
    }

    /// The next effect, out of the queue.
    pub(crate) fn take_next(&mut self) -> Option<Effect> {
        for effect in self.fresh.drain(..).rev() {
            self.waiting.push_front(effect);
        }
        self.waiting.pop_front()
    }

    /// Puts an effect back as the next one.
    pub(crate) fn put_back(&mut self, effect: Effect) {
        self.waiting.push_front(effect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_effect_leads_to_comes_before_what_was_to_follow_it() {
        let mut queue = EffectQueue::default();
        queue.add([Effect::Freeze, Effect::Remove]);
        assert!(queue.begin() && !queue.begin());
        assert_eq!(queue.take_next(), Some(Effect::Freeze));
        queue.add([Effect::KillAll]);
        queue.add([Effect::Thaw]);
        assert_eq!(queue.take_next(), Some(Effect::KillAll));
        queue.put_back(Effect::KillAll);
        let rest: Vec<_> = std::iter::from_fn(|| queue.take_next()).collect();
        assert_eq!(rest, [Effect::KillAll, Effect::Thaw, Effect::Remove]);
        queue.end();
        assert!(queue.begin());
    }
}
