//! CPU time that the two slots of a vCPU may use together, and exemptions of one slot for a while.

use super::{CpuQuota, TierSlot};

/// Wanted CPU bandwidth of a vCPU, and the number of callers that exempt each of its slots from quotas.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VcpuBandwidth {
    pub(crate) quota: Option<CpuQuota>,
    /// Quota to which each slot is limited; `None`: only the vCPU's quota counts.
    pub(crate) caps: [Option<CpuQuota>; 2],
    /// Number of callers that exempt slot `a`, and slot `b`, from quotas.
    lifted: [u32; 2],
    /// Quota that was written to the vCPU's group, and to the group of each slot.
    pub(crate) told: ToldQuota,
    pub(crate) slots_told: [ToldQuota; 2],
}

/// Quota that was last written to a group, as opposed to the wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToldQuota {
    /// The group has the given quota; `None`, as in every new group: it has no quota.
    Quota(Option<CpuQuota>),
    /// A write failed: the group has its old quota, the new one, or none.
    Unknown,
}

impl Default for ToldQuota {
    fn default() -> Self {
        Self::Quota(None)
    }
}

impl ToldQuota {
    /// Returns whether the group has a quota for certain, of at most `limit`.
    pub(crate) fn is_within(self, limit: CpuQuota) -> bool {
        matches!(self, Self::Quota(Some(quota)) if quota.is_at_most(limit))
    }
}

/// The quotas in force for a vCPU and for its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InForce {
    /// Quota of the vCPU, for both slots together; `None`: no quota.
    pub(crate) vcpu: Option<CpuQuota>,
    /// Quota of each slot; `None`: no quota.
    pub(crate) slots: [Option<CpuQuota>; 2],
}

impl VcpuBandwidth {
    pub(crate) fn lift_slot(&mut self, slot: TierSlot) {
        let [a, b] = &mut self.lifted;
        let lifted = if slot == TierSlot::A { a } else { b };
        *lifted += 1;
    }

    pub(crate) fn put_back(&mut self, slot: TierSlot) {
        let [a, b] = &mut self.lifted;
        let lifted = if slot == TierSlot::A { a } else { b };
        *lifted = lifted.saturating_sub(1);
    }

    /// Records that the group of `slot` was removed and created again, without a quota.
    pub(crate) fn made_anew(&mut self, slot: TierSlot) {
        let [a, b] = &mut self.slots_told;
        *(if slot == TierSlot::A { a } else { b }) = ToldQuota::default();
    }

    /// Returns the quotas to be in force. While one slot is exempt, the vCPU's group can have no quota, so the other slot gets the
    /// vCPU's quota: a neighbour that is being started or dumped is no reason to run faster.
    pub(crate) fn in_force(&self) -> InForce {
        let lifted = self.lifted.map(|count| count > 0);
        match lifted {
            [false, false] => InForce { vcpu: self.quota, slots: self.caps },
            [a, b] => {
                let slot =
                    |lifted: bool, cap: Option<CpuQuota>| cap.or(self.quota).filter(|_| !lifted);
                InForce { vcpu: None, slots: [slot(a, self.caps[0]), slot(b, self.caps[1])] }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbour_of_an_exempt_slot_keeps_the_quota() {
        let quota = Some(CpuQuota::from_ppm(500_000, 20_000));
        let mut bandwidth = VcpuBandwidth { quota, ..VcpuBandwidth::default() };
        let both = InForce { vcpu: quota, slots: [None, None] };
        assert_eq!(bandwidth.in_force(), both);
        bandwidth.lift_slot(TierSlot::A);
        bandwidth.lift_slot(TierSlot::A);
        assert_eq!(bandwidth.in_force(), InForce { vcpu: None, slots: [None, quota] });
        bandwidth.lift_slot(TierSlot::B);
        assert_eq!(bandwidth.in_force(), InForce { vcpu: None, slots: [None, None] });
        bandwidth.put_back(TierSlot::A);
        bandwidth.put_back(TierSlot::A);
        assert_eq!(bandwidth.in_force(), InForce { vcpu: None, slots: [quota, None] });
        bandwidth.put_back(TierSlot::B);
        assert_eq!(bandwidth.in_force(), both);
    }

    #[test]
    fn a_slot_keeps_its_cap_while_the_other_is_exempt() {
        let [all, half] = [500_000, 250_000].map(|ppm| Some(CpuQuota::from_ppm(ppm, 20_000)));
        let mut bandwidth =
            VcpuBandwidth { quota: all, caps: [half, None], ..VcpuBandwidth::default() };
        assert_eq!(bandwidth.in_force(), InForce { vcpu: all, slots: [half, None] });
        bandwidth.lift_slot(TierSlot::B);
        assert_eq!(bandwidth.in_force(), InForce { vcpu: None, slots: [half, None] });
        bandwidth.lift_slot(TierSlot::A);
        bandwidth.put_back(TierSlot::B);
        assert_eq!(bandwidth.in_force(), InForce { vcpu: None, slots: [None, all] });
    }
}
