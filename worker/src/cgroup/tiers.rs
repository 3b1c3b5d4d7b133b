//! Priorities of a vCPU's two slots while their tasks change places.

use std::time::Duration;

use super::{Controller, Result, Slot, Vm, cpu, procs, tree};

const CPU: [Controller; 2] = [Controller::Cpu, Controller::Cpuacct];

impl Vm {
    /// Puts `slot` of vCPU `vcpu` in the foreground for good, and its sibling, which must be
    /// empty, in the background.
    ///
    /// The sibling's group is made anew. Under a quota the older of two sibling groups keeps its
    /// place when a throttling ends and the younger one does not, so that a background group that
    /// is older than its foreground takes far more than the idle time: measured on Linux 6.18
    /// with both busy and 11 % of a core in each 100 ms, 31 % of the foreground's; with the
    /// background the younger, nothing that could be measured.
    ///
    /// What the sibling was charged for is forgotten with it; its quota it gets again.
    ///
    /// # Errors
    /// No such vCPU, the sibling is not empty at the deadline, or the kernel refuses.
    pub fn promote(&self, vcpu: u32, slot: Slot, deadline: Duration) -> Result<()> {
        let v2 = self.hierarchy.is_v2();
        cpu::set_foreground(&self.slot_group(Controller::Cpu, vcpu, slot)?, v2, true)?;
        let sibling = self.vcpu_relative(vcpu)?.join(slot.other().name());
        for group in self.hierarchy.groups(&CPU, &sibling) {
            procs::remove(&group, deadline)?;
        }
        tree::create_groups(&self.hierarchy, &CPU, &sibling)?;
        self.change_bandwidth(vcpu, |b| b.made_anew(slot.other()))?;
        let sibling = self.slot_group(Controller::Cpu, vcpu, slot.other())?;
        cpu::set_foreground(&sibling, v2, false)
    }

    /// Gives `slot` of vCPU `vcpu` the priority of a foreground, whatever its sibling has: for
    /// tasks that must get on, such as those that die or are dumped. [`Vm::demote`] ends it.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the priority.
    pub fn boost(&self, vcpu: u32, slot: Slot) -> Result<()> {
        let group = self.slot_group(Controller::Cpu, vcpu, slot)?;
        cpu::set_foreground(&group, self.hierarchy.is_v2(), true)
    }

    /// Puts `slot` of vCPU `vcpu` in the background, whatever its sibling is.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses the priority.
    pub fn demote(&self, vcpu: u32, slot: Slot) -> Result<()> {
        let group = self.slot_group(Controller::Cpu, vcpu, slot)?;
        cpu::set_foreground(&group, self.hierarchy.is_v2(), false)
    }
}
