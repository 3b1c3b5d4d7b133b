//! Priorities of a vCPU's two slots while their tasks change places.

use std::time::Duration;

use super::{CgroupController, Result, TierSlot, VmGroups, cpu, procs, tree};

const CPU: [CgroupController; 2] = [CgroupController::Cpu, CgroupController::Cpuacct];

impl VmGroups {
    /// Puts `slot` of vCPU `vcpu` in the foreground for good, and its sibling, which must be
    /// empty, in the background.
    ///
    /// The sibling's control group is removed and created again. Under a quota the older of two sibling groups keeps its place in
    /// the scheduler's queue when a throttling ends, and the younger one does not. A background group that is older than its
    /// foreground therefore takes far more than the idle time: measured on Linux 6.18 with both busy and 11 % of a core in each 100
    /// ms, 31 % of the foreground's; with the background the younger, nothing that could be measured.
    ///
    /// The CPU time charged to the sibling is forgotten with its old group; its quota is set again.
    ///
    /// # Errors
    /// No such vCPU, the sibling is not empty at the deadline, or the kernel refuses.
    pub fn promote_slot(&self, vcpu: u32, slot: TierSlot, deadline: Duration) -> Result<()> {
        let v2 = self.hierarchy.is_v2();
        cpu::set_foreground(&self.slot_group(CgroupController::Cpu, vcpu, slot)?, v2, true)?;
        let sibling = self.vcpu_relative(vcpu)?.join(slot.other_slot().name());
        for group in self.hierarchy.group_paths(&CPU, &sibling) {
            procs::remove(&group, deadline)?;
        }
        tree::create_groups(&self.hierarchy, &CPU, &sibling)?;
        self.change_bandwidth(vcpu, |b| b.made_anew(slot.other_slot()))?;
        let sibling = self.slot_group(CgroupController::Cpu, vcpu, slot.other_slot())?;
        cpu::set_foreground(&sibling, v2, false)
    }

    /// Gives `slot` of vCPU `vcpu` the priority of a foreground, whatever priority the vCPU's other slot has: for tasks that must
    /// not wait, such as those that die or are dumped. [`VmGroups::demote_slot`] ends it.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the priority.
    pub fn boost_slot(&self, vcpu: u32, slot: TierSlot) -> Result<()> {
        let group = self.slot_group(CgroupController::Cpu, vcpu, slot)?;
        cpu::set_foreground(&group, self.hierarchy.is_v2(), true)
    }

    /// Puts `slot` of vCPU `vcpu` in the background, whatever the vCPU's other slot is.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the priority.
    pub fn demote_slot(&self, vcpu: u32, slot: TierSlot) -> Result<()> {
        let group = self.slot_group(CgroupController::Cpu, vcpu, slot)?;
        cpu::set_foreground(&group, self.hierarchy.is_v2(), false)
    }
}
