//! Who holds which slot of which vCPU, and which slots are in the foreground.

use dormouse_units::Tier;

use super::Key;

/// One of a vCPU's two tier groups. Which is foreground changes; which is which does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The group `a`, foreground at first.
    A,
    /// The group `b`, background at first.
    B,
}

impl Slot {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// As its group is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Vcpu {
    foreground: Slot,
    a: Option<Key>,
    b: Option<Key>,
}

impl Vcpu {
    fn holder(&mut self, slot: Slot) -> &mut Option<Key> {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    fn slot(&self, tier: Tier) -> Slot {
        match tier {
            Tier::Foreground => self.foreground,
            Tier::Background => self.foreground.other(),
        }
    }
}

/// A process's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// On which vCPU.
    pub vcpu: u32,
    /// In which of its groups.
    pub slot: Slot,
    /// What that is now.
    pub tier: Tier,
    /// Who has the vCPU's other slot.
    pub neighbour: Option<Key>,
}

/// All slots of a VM: who has processes in them, dying ones too.
#[derive(Debug)]
pub struct Slots {
    vcpus: Vec<Vcpu>,
}

impl Slots {
    pub(super) fn new(vcpus: u32) -> Self {
        let empty = Vcpu { foreground: Slot::A, a: None, b: None };
        Self { vcpus: vec![empty; vcpus as usize] }
    }

    /// Whether all these vCPUs exist, each of them once.
    #[must_use]
    pub fn are_valid(&self, on: &[u32]) -> bool {
        let exists = |p: &u32| (*p as usize) < self.vcpus.len();
        !on.is_empty() && on.iter().enumerate().all(|(n, p)| exists(p) && !on[..n].contains(p))
    }

    /// Whether the slots of this tier on all these vCPUs are free.
    #[must_use]
    pub fn are_free(&self, on: &[u32], tier: Tier) -> bool {
        on.iter().all(|p| {
            self.vcpus.get(*p as usize).is_some_and(|vcpu| {
                let mut vcpu = *vcpu;
                let slot = vcpu.slot(tier);
                vcpu.holder(slot).is_none()
            })
        })
    }

    /// Seats a task on free slots.
    pub(super) fn take(&mut self, key: Key, on: &[u32], tier: Tier) {
        for p in on {
            if let Some(vcpu) = self.vcpus.get_mut(*p as usize) {
                let slot = vcpu.slot(tier);
                *vcpu.holder(slot) = Some(key);
            }
        }
    }

    /// Empties all slots of a task.
    pub(super) fn leave(&mut self, key: Key) {
        for vcpu in &mut self.vcpus {
            for slot in [Slot::A, Slot::B] {
                let holder = vcpu.holder(slot);
                if *holder == Some(key) {
                    *holder = None;
                }
            }
        }
    }

    /// Slot of a vCPU that is its foreground.
    #[must_use]
    pub fn foreground(&self, vcpu: u32) -> Slot {
        self.vcpus.get(vcpu as usize).map_or(Slot::A, |p| p.foreground)
    }

    /// Brings a task to the foreground where it sits: the slots that are foreground from now on,
    /// or the first vCPU whose foreground is somebody else's.
    pub(super) fn promote(&mut self, key: Key) -> Result<Vec<(u32, Slot)>, u32> {
        let mut turned = Vec::new();
        for (vcpu, p) in self.vcpus.iter_mut().zip(0..) {
            let slot = vcpu.foreground.other();
            if *vcpu.holder(slot) == Some(key) {
                if vcpu.holder(slot.other()).is_some() {
                    return Err(p);
                }
                turned.push((p, slot));
            }
        }
        for (p, slot) in &turned {
            if let Some(vcpu) = self.vcpus.get_mut(*p as usize) {
                vcpu.foreground = *slot;
            }
        }
        Ok(turned)
    }

    /// The seats of the processes of a task.
    #[must_use]
    pub fn all_of(&self, key: Key) -> Vec<Seat> {
        let all: Vec<u32> = (0..).take(self.vcpus.len()).collect();
        self.seats(key, &all)
    }

    /// The seats of the processes of a task, in the order of `on`.
    #[must_use]
    pub fn seats(&self, key: Key, on: &[u32]) -> Vec<Seat> {
        on.iter()
            .filter_map(|p| {
                let mut vcpu = *self.vcpus.get(*p as usize)?;
                let slot =
                    [Slot::A, Slot::B].into_iter().find(|slot| *vcpu.holder(*slot) == Some(key))?;
                let tier =
                    if slot == vcpu.foreground { Tier::Foreground } else { Tier::Background };
                let neighbour = *vcpu.holder(slot.other());
                Some(Seat { vcpu: *p, slot, tier, neighbour })
            })
            .collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use dormouse_units::{Attempt, TaskId};

    use super::*;

    const ONE: Key = (TaskId::new(1), Attempt::new(1));
    const TWO: Key = (TaskId::new(2), Attempt::new(1));

    #[test]
    fn a_promotion_turns_the_slots_and_moves_nobody() {
        let mut seats = Slots::new(3);
        seats.take(ONE, &[0, 1], Tier::Foreground);
        seats.take(TWO, &[1, 2], Tier::Background);
        assert_eq!(seats.promote(TWO), Err(1), "vCPU 1 is still taken");
        let before = seats.seats(TWO, &[1, 2]);
        assert_eq!(before[0].neighbour, Some(ONE));
        assert_eq!(before[1].neighbour, None);
        seats.leave(ONE);
        assert_eq!(seats.promote(TWO), Ok(vec![(1, Slot::B), (2, Slot::B)]));
        let after = seats.seats(TWO, &[1, 2]);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((before.slot, after.tier), (after.slot, Tier::Foreground));
        }
        // The next background of these vcpus gets the other slots.
        assert!(seats.are_free(&[1, 2], Tier::Background));
        seats.take(ONE, &[1, 2], Tier::Background);
        assert_eq!(seats.seats(ONE, &[1, 2])[0].slot, Slot::A);
        assert!(!seats.are_free(&[0, 1], Tier::Foreground));
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let seats = Slots::new(2);
        assert!(seats.are_valid(&[1, 0]));
        for on in [&[][..], &[2], &[0, 0]] {
            assert!(!seats.are_valid(on), "{on:?}");
        }
        assert!(!seats.are_free(&[7], Tier::Foreground));
        assert_eq!(Slots::new(1).promote(ONE).unwrap(), []);
    }
}
