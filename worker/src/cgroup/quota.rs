//! CPU time that the vCPUs of a VM and their slots may use, and exemptions of one slot for a while.

use std::{
    ops::Deref,
    path::Path,
    sync::{Arc, PoisonError},
};

use super::{
    CgroupController, CpuQuota, Result, TierSlot, VmGroups,
    bandwidth::{ToldQuota, VcpuBandwidth},
    cpu,
};

impl VmGroups {
    /// Exempts `slot` from the quota of vCPU `vcpu` until the returned value is dropped. The vCPU's other slot may use the whole
    /// quota meanwhile, and no more.
    ///
    /// This is for CRIU, which runs code inside the task: a throttled task would make CRIU wait. A quota that is set during the
    /// exemption is in force after it.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    pub fn lift_quota(&self, vcpu: u32, slot: TierSlot) -> Result<LiftedQuota<&Self>> {
        LiftedQuota::new(self, vcpu, slot)
    }

    /// Lifts a quota as [`VmGroups::lift_quota`] does, with shared ownership of the VM.
    ///
    /// # Errors
    ///
    /// Those of [`VmGroups::lift_quota`].
    pub fn lift_quota_of(
        self: Arc<Self>,
        vcpu: u32,
        slot: TierSlot,
    ) -> Result<LiftedQuota<Arc<Self>>> {
        LiftedQuota::new(self, vcpu, slot)
    }

    /// Gives vCPU `vcpu` the share of `ppm` millionths of one host core, and limits its slots `a` and `b` to the shares
    /// in `slots`, in ppm (`None`: the vCPU's whole share).
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the quota, as it does for a slot above its vCPU.
    pub fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> Result<()> {
        let (quota, caps) =
            (self.core_quota(ppm), slots.map(|cap| cap.map(|ppm| self.core_quota(ppm))));
        self.change_bandwidth(vcpu, |b| (b.quota, b.caps) = (Some(quota), caps))
    }

    /// Changes the wanted bandwidth of a vCPU, and writes it to the kernel.
    ///
    /// If the kernel refuses, the wanted bandwidth is changed nevertheless, and the next change writes it.
    pub(super) fn change_bandwidth(
        &self,
        vcpu: u32,
        change: impl FnOnce(&mut VcpuBandwidth),
    ) -> Result<()> {
        let group = self.vcpu_group(CgroupController::Cpu, vcpu)?;
        let mut bandwidths = self.bandwidths.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bandwidth) = bandwidths.get_mut(vcpu as usize) else {
            return Ok(());
        };
        change(bandwidth);
        let wanted = bandwidth.in_force();
        let VcpuBandwidth { told, slots_told, .. } = bandwidth;
        let v2 = self.hierarchy.is_v2();
        let slot_groups = TierSlot::BOTH.map(|slot| group.join(slot.name()));
        // The vCPU's first where it begins to bind or gets more and last where it ends or gets
        // less, so that no slot is without quota in between, nor has one above the vCPU's, which
        // the kernel refuses.
        let first = wanted.vcpu.filter(|limit| match *told {
            ToldQuota::Quota(before) => before.is_none_or(|before| before.is_at_most(*limit)),
            ToldQuota::Unknown => true,
        });
        if let Some(limit) = first {
            // A slot may still have more than the vCPU is to have: what was lifted is put back
            // after the vCPU was given less.
            for ((group, told), wanted) in
                slot_groups.iter().zip(&mut *slots_told).zip(wanted.slots)
            {
                if *told != ToldQuota::default() && !told.is_within(limit) {
                    set_quota(told, group, v2, wanted.or(Some(limit)))?;
                }
            }
            set_quota(told, &group, v2, wanted.vcpu)?;
        }
        for ((group, told), wanted) in slot_groups.iter().zip(slots_told).zip(wanted.slots) {
            set_quota(told, group, v2, wanted)?;
        }
        set_quota(told, &group, v2, wanted.vcpu)
    }
}

/// Writes a quota to a group, unless the group is known to have that quota.
fn set_quota(told: &mut ToldQuota, group: &Path, v2: bool, quota: Option<CpuQuota>) -> Result<()> {
    if *told == ToldQuota::Quota(quota) {
        return Ok(());
    }
    *told = ToldQuota::Unknown;
    cpu::set_quota(group, v2, quota)?;
    *told = ToldQuota::Quota(quota);
    Ok(())
}

/// Lifts the quota of one slot of a vCPU until dropped.
#[derive(Debug)]
pub struct LiftedQuota<V: Deref<Target = VmGroups>> {
    vm: V,
    vcpu: u32,
    slot: TierSlot,
}

impl<V: Deref<Target = VmGroups>> LiftedQuota<V> {
    fn new(vm: V, vcpu: u32, slot: TierSlot) -> Result<Self> {
        vm.vcpu_relative(vcpu)?;
        // Dropped, and so counted down, also where lifting fails.
        let lifted = Self { vm, vcpu, slot };
        lifted.vm.change_bandwidth(vcpu, |b| b.lift_slot(slot))?;
        Ok(lifted)
    }
}

impl<V: Deref<Target = VmGroups>> Drop for LiftedQuota<V> {
    fn drop(&mut self) {
        let put_back = self.vm.change_bandwidth(self.vcpu, |b| b.put_back(self.slot));
        if let Err(error) = put_back {
            // The group is gone, with its VM, or the next change writes it again.
            tracing::warn!(%error, "the quota of a vCPU could not be put back");
        }
    }
}
