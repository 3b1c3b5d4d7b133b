//! What the vCPUs of a VM and their slots may use, and how one slot is exempt for a while.

use std::{
    ops::Deref,
    sync::{Arc, PoisonError},
};

use super::{Controller, Result, Slot, Vm, bandwidth::Bandwidth, cpu};

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
        LiftedQuota::of(self, vcpu, slot)
    }

    /// [`Vm::lift_quota`] for as long as its owner likes.
    ///
    /// # Errors
    /// See there.
    pub fn lift_quota_of(self: Arc<Self>, vcpu: u32, slot: Slot) -> Result<LiftedQuota<Arc<Self>>> {
        LiftedQuota::of(self, vcpu, slot)
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

    /// Does what [`Vm::lift_quota`] does, until [`Vm::put_back_quota`] is called as often.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    pub fn lift_quota_on(&self, vcpu: u32, slot: Slot) -> Result<()> {
        self.vcpu_relative(vcpu)?;
        self.change_bandwidth(vcpu, |b| b.lift(slot))
    }

    /// Ends what [`Vm::lift_quota_on`] began.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    pub fn put_back_quota(&self, vcpu: u32, slot: Slot) -> Result<()> {
        self.change_bandwidth(vcpu, |b| b.put_back(slot))
    }

    /// Changes what a vCPU should have, and what it has accordingly.
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
        let before = bandwidth.in_force();
        change(bandwidth);
        let after = bandwidth.in_force();
        let v2 = self.hierarchy.is_v2();
        let vcpu = || match before.vcpu == after.vcpu {
            true => Ok(()),
            false => cpu::set_quota(&group, v2, after.vcpu),
        };
        // The vCPU's first where it begins to bind or gets more and last where it ends or gets
        // less, so that no slot is without quota in between, nor has one above the vCPU's, which
        // the kernel refuses.
        let is_first = after.vcpu.is_some_and(|after| before.vcpu.is_none_or(|b| b.le(after)));
        if is_first {
            // A slot may still have more than the vCPU is to have: what was lifted is put back
            // after the vCPU was given less.
            if let Some(limit) = after.vcpu {
                for ((slot, before), after) in Slot::BOTH.iter().zip(before.slots).zip(after.slots)
                {
                    if before.is_some_and(|before| !before.le(limit)) {
                        let below = after.or(Some(limit));
                        cpu::set_quota(&group.join(slot.name()), v2, below)?;
                    }
                }
            }
            vcpu()?;
        }
        for ((slot, before), after) in Slot::BOTH.iter().zip(before.slots).zip(after.slots) {
            if before != after {
                cpu::set_quota(&group.join(slot.name()), v2, after)?;
            }
        }
        if !is_first {
            vcpu()?;
        }
        Ok(())
    }
}

/// While it lives, one slot of a vCPU has no quota.
#[derive(Debug)]
pub struct LiftedQuota<V: Deref<Target = Vm>> {
    vm: V,
    vcpu: u32,
    slot: Slot,
}

impl<V: Deref<Target = Vm>> LiftedQuota<V> {
    fn of(vm: V, vcpu: u32, slot: Slot) -> Result<Self> {
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
            // The group is gone, with its VM, or the next change of quota will tell.
            tracing::warn!(%error, "the quota of a vCPU could not be put back");
        }
    }
}
