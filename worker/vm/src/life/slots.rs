//! Table of which attempt holds which slot of which vCPU, and which slots are in the foreground.

use dormouse_units::Tier;

use super::Key;

/// One of the two control groups (slots) of a vCPU. Which slot is the foreground can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TierSlot {
    /// The slot with the control group `a`, which is the foreground at first.
    A,
    /// The slot with the control group `b`, which is the background at first.
    B,
}

impl TierSlot {
    /// Both slots of a vCPU.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Returns the other slot of the vCPU.
    #[must_use]
    pub const fn other_slot(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Returns the name of the slot's control group.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct VcpuSlots {
    foreground: TierSlot,
    a: Option<Key>,
    b: Option<Key>,
}

impl VcpuSlots {
    fn holder_mut(&mut self, slot: TierSlot) -> &mut Option<Key> {
        match slot {
            TierSlot::A => &mut self.a,
            TierSlot::B => &mut self.b,
        }
    }

    fn slot_of_tier(&self, tier: Tier) -> TierSlot {
        match tier {
            Tier::Foreground => self.foreground,
            Tier::Background => self.foreground.other_slot(),
        }
    }
}

/// Seat of a process on a VM: a vCPU, and a slot of it with its tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptSeat {
    /// vCPU that the process runs on.
    pub vcpu: u32,
    /// Slot of the vCPU that the process runs in.
    pub slot: TierSlot,
    /// Current tier of the slot.
    pub tier: Tier,
    /// Attempt in the other slot of the vCPU; `None`: that slot is free.
    pub neighbour: Option<Key>,
}

/// All slots of a VM, with the attempts that have processes in them, including dying ones.
#[derive(Debug)]
pub struct VmSlots {
    vcpus: Vec<VcpuSlots>,
}

impl VmSlots {
    pub(super) fn new(vcpus: u32) -> Self {
        let empty = VcpuSlots { foreground: TierSlot::A, a: None, b: None };
        Self { vcpus: vec![empty; vcpus as usize] }
    }

    /// Returns whether all vCPUs in `on` exist and none occurs twice.
    #[must_use]
    pub fn are_valid(&self, on: &[u32]) -> bool {
        let exists = |p: &u32| (*p as usize) < self.vcpus.len();
        !on.is_empty() && on.iter().enumerate().all(|(n, p)| exists(p) && !on[..n].contains(p))
    }

    /// Returns whether on all vCPUs in `on` the slot of tier `tier` is free.
    #[must_use]
    pub fn are_free(&self, on: &[u32], tier: Tier) -> bool {
        on.iter().all(|p| {
            self.vcpus.get(*p as usize).is_some_and(|vcpu| {
                let mut vcpu = *vcpu;
                let slot = vcpu.slot_of_tier(tier);
                vcpu.holder_mut(slot).is_none()
            })
        })
    }

    /// Assigns the free slots of tier `tier` on the vCPUs `on` to an attempt.
    pub(super) fn take_slots(&mut self, key: Key, on: &[u32], tier: Tier) {
        for p in on {
            if let Some(vcpu) = self.vcpus.get_mut(*p as usize) {
                let slot = vcpu.slot_of_tier(tier);
                *vcpu.holder_mut(slot) = Some(key);
            }
        }
    }

    /// Frees all slots of an attempt.
    pub(super) fn leave_slots(&mut self, key: Key) {
        for vcpu in &mut self.vcpus {
            for slot in [TierSlot::A, TierSlot::B] {
                let holder = vcpu.holder_mut(slot);
                if *holder == Some(key) {
                    *holder = None;
                }
            }
        }
    }

    /// Returns which slot of a vCPU is the foreground.
    #[must_use]
    pub fn foreground_slot(&self, vcpu: u32) -> TierSlot {
        self.vcpus.get(vcpu as usize).map_or(TierSlot::A, |p| p.foreground)
    }

    /// Promotes a task to the foreground of its vCPUs; returns the slots that became foreground, or as an error the
    /// first vCPU whose foreground belongs to another task.
    pub(super) fn promote_task(&mut self, key: Key) -> Result<Vec<(u32, TierSlot)>, u32> {
        let mut turned = Vec::new();
        for (vcpu, p) in self.vcpus.iter_mut().zip(0..) {
            let slot = vcpu.foreground.other_slot();
            if *vcpu.holder_mut(slot) == Some(key) {
                if vcpu.holder_mut(slot.other_slot()).is_some() {
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

    /// Returns the seats of an attempt's processes, in the order of their vCPUs.
    #[must_use]
    pub fn all_of(&self, key: Key) -> Vec<AttemptSeat> {
        let all: Vec<u32> = (0..).take(self.vcpus.len()).collect();
        self.task_seats(key, &all)
    }

    /// Returns the seats of an attempt's processes on the vCPUs `on`, in that order.
    #[must_use]
    pub fn task_seats(&self, key: Key, on: &[u32]) -> Vec<AttemptSeat> {
        on.iter()
            .filter_map(|p| {
                let mut vcpu = *self.vcpus.get(*p as usize)?;
                let slot = [TierSlot::A, TierSlot::B]
                    .into_iter()
                    .find(|slot| *vcpu.holder_mut(*slot) == Some(key))?;
                let tier =
                    if slot == vcpu.foreground { Tier::Foreground } else { Tier::Background };
                let neighbour = *vcpu.holder_mut(slot.other_slot());
                Some(AttemptSeat { vcpu: *p, slot, tier, neighbour })
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
        let mut seats = VmSlots::new(3);
        seats.take_slots(ONE, &[0, 1], Tier::Foreground);
        seats.take_slots(TWO, &[1, 2], Tier::Background);
        assert_eq!(seats.promote_task(TWO), Err(1), "vCPU 1 is still taken");
        let before = seats.task_seats(TWO, &[1, 2]);
        assert_eq!(before[0].neighbour, Some(ONE));
        assert_eq!(before[1].neighbour, None);
        seats.leave_slots(ONE);
        assert_eq!(seats.promote_task(TWO), Ok(vec![(1, TierSlot::B), (2, TierSlot::B)]));
        let after = seats.task_seats(TWO, &[1, 2]);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((before.slot, after.tier), (after.slot, Tier::Foreground));
        }
        // The next background of these vcpus gets the other slots.
        assert!(seats.are_free(&[1, 2], Tier::Background));
        seats.take_slots(ONE, &[1, 2], Tier::Background);
        assert_eq!(seats.task_seats(ONE, &[1, 2])[0].slot, TierSlot::A);
        assert!(!seats.are_free(&[0, 1], Tier::Foreground));
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let seats = VmSlots::new(2);
        assert!(seats.are_valid(&[1, 0]));
        for on in [&[][..], &[2], &[0, 0]] {
            assert!(!seats.are_valid(on), "{on:?}");
        }
        assert!(!seats.are_free(&[7], Tier::Foreground));
        assert_eq!(VmSlots::new(1).promote_task(ONE).unwrap(), []);
    }
}
