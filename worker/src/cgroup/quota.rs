//! What the vCPUs of a VM and their slots may use, and how one slot is exempt for a while.

use std::{
    ops::Deref,
    path::Path,
    sync::{Arc, PoisonError},
};

use super::{
    Controller, CpuQuota, Result, Slot, Vm,
    bandwidth::{Bandwidth, Told},
    cpu,
};

impl Vm {
    /// Exempts `slot` from the quota of vCPU `vcpu` until the returned value is dropped. The other
    /// slot may use the whole quota meanwhile, and no more.
    ///
    /// For CRIU, which runs code inside the task: a throttled task makes it wait. A
    /// quota set meanwhile is in force from then on.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    pub fn lift_quota(&self, vcpu: u32, slot: Slot) -> Result<LiftedQuota<&Self>> {
        LiftedQuota::new(self, vcpu, slot)
    }

    /// [`Vm::lift_quota`] for as long as its owner likes.
    ///
    /// # Errors
    /// See there.
    pub fn lift_quota_of(self: Arc<Self>, vcpu: u32, slot: Slot) -> Result<LiftedQuota<Arc<Self>>> {
        LiftedQuota::new(self, vcpu, slot)
    }

    /// Gives vCPU `vcpu` the share of `ppm` millionths of one host core, and its slots `a` and `b`
    /// at most so much of that (`None`: all).
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the quota, as it does for a slot above its vCPU.
    pub fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> Result<()> {
        let (quota, caps) = (self.quota(ppm), slots.map(|cap| cap.map(|ppm| self.quota(ppm))));
        self.change_bandwidth(vcpu, |b| (b.quota, b.caps) = (Some(quota), caps))
    }

    /// Changes what a vCPU should have, and what it has accordingly.
    ///
    /// Where the kernel refuses, what it should have is changed all the same, and what it has
    /// follows with the next change.
    pub(super) fn change_bandwidth(
        &self,
        vcpu: u32,
        change: impl FnOnce(&mut Bandwidth),
    ) -> Result<()> {
        let group = self.vcpu_group(Controller::Cpu, vcpu)?;
        let mut bandwidths = self.bandwidths.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bandwidth) = bandwidths.get_mut(vcpu as usize) else {
            return Ok(());
        };
        change(bandwidth);
        let wanted = bandwidth.in_force();
        let Bandwidth { told, slots_told, .. } = bandwidth;
        let v2 = self.hierarchy.is_v2();
        let slot_groups = Slot::BOTH.map(|slot| group.join(slot.name()));
        // The vCPU's first where it begins to bind or gets more and last where it ends or gets
        // less, so that no slot is without quota in between, nor has one above the vCPU's, which
        // the kernel refuses.
        let first = wanted.vcpu.filter(|limit| match *told {
            Told::Quota(before) => before.is_none_or(|before| before.le(*limit)),
            Told::Unknown => true,
        });
        if let Some(limit) = first {
            // A slot may still have more than the vCPU is to have: what was lifted is put back
            // after the vCPU was given less.
            for ((group, told), wanted) in
                slot_groups.iter().zip(&mut *slots_told).zip(wanted.slots)
            {
                if *told != Told::default() && !told.is_within(limit) {
                    tell(told, group, v2, wanted.or(Some(limit)))?;
                }
            }
            tell(told, &group, v2, wanted.vcpu)?;
        }
        for ((group, told), wanted) in slot_groups.iter().zip(slots_told).zip(wanted.slots) {
            tell(told, group, v2, wanted)?;
        }
        tell(told, &group, v2, wanted.vcpu)
    }
}

/// Has a group have this quota, if it may have another.
fn tell(told: &mut Told, group: &Path, v2: bool, quota: Option<CpuQuota>) -> Result<()> {
    if *told == Told::Quota(quota) {
        return Ok(());
    }
    *told = Told::Unknown;
    cpu::set_quota(group, v2, quota)?;
    *told = Told::Quota(quota);
    Ok(())
}

/// While it lives, one slot of a vCPU has no quota.
#[derive(Debug)]
pub struct LiftedQuota<V: Deref<Target = Vm>> {
    vm: V,
    vcpu: u32,
    slot: Slot,
}

impl<V: Deref<Target = Vm>> LiftedQuota<V> {
    fn new(vm: V, vcpu: u32, slot: Slot) -> Result<Self> {
        vm.vcpu_relative(vcpu)?;
        // Dropped, and so counted down, also where lifting fails.
        let lifted = Self { vm, vcpu, slot };
        lifted.vm.change_bandwidth(vcpu, |b| b.lift(slot))?;
        Ok(lifted)
    }
}

impl<V: Deref<Target = Vm>> Drop for LiftedQuota<V> {
    fn drop(&mut self) {
        let put_back = self.vm.change_bandwidth(self.vcpu, |b| b.put_back(self.slot));
        if let Err(error) = put_back {
            // The group is gone, with its VM, or the next change writes it again.
            tracing::warn!(%error, "the quota of a vCPU could not be put back");
        }
    }
}
