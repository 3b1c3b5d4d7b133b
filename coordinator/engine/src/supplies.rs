//! The processors that were last logged for VMs, and VMs' shares of them, in runs whose spot VMs run in the background
//! of other VMs.

use dormouse_units::{Ppm, VmId, Window};
use thin_vec::ThinVec;

/// Processors and shares of each VM that were last logged; empty in runs whose spot VMs have processors of their own.
#[derive(Debug, Default)]
pub(crate) struct VmSupplies {
    vms: Window<Box<VmSupply>, VmId>,
}

/// Processors and shares of one VM that were last logged.
#[derive(Clone, Debug)]
struct VmSupply {
    processors: ThinVec<u32>,
    /// Share of its processor that each vCPU of the VM has.
    shares: ThinVec<Ppm>,
}

impl VmSupplies {
    /// Adds a launched VM of `vcpus` vCPUs, whose processors aren't logged yet.
    pub(crate) fn vm_launched(&mut self, vm: VmId, vcpus: u32) {
        let shares = std::iter::repeat_n(Ppm::ONE, vcpus as usize).collect();
        self.vms.insert(vm, Box::new(VmSupply { processors: ThinVec::new(), shares }));
    }

    /// Removes a VM that has ended.
    pub(crate) fn vm_ended(&mut self, vm: VmId) {
        self.vms.remove(vm);
    }

    /// Records that a VM has left its processors.
    pub(crate) fn processors_left(&mut self, vm: VmId) {
        if let Some(supply) = self.vms.get_mut(vm) {
            supply.processors.clear();
        }
    }

    /// Returns whether other processors than these, or none, were last logged for a VM.
    pub(crate) fn are_others(&self, vm: VmId, processors: &[u32]) -> bool {
        self.vms.get(vm).is_some_and(|supply| supply.processors[..] != *processors)
    }

    /// Records the logged processors of a VM.
    pub(crate) fn processors_placed(&mut self, vm: VmId, processors: &[u32]) {
        if let Some(supply) = self.vms.get_mut(vm) {
            supply.processors = processors.into();
        }
    }

    /// Returns the share of its processor that a vCPU has; `None`: no share was logged for it.
    pub(crate) fn share_of(&self, vm: VmId, vcpu: u32) -> Option<Ppm> {
        self.vms.get(vm)?.shares.get(vcpu as usize).copied()
    }

    /// Records the share of its processor that a vCPU has, as last sent to the VM.
    pub(crate) fn set_share(&mut self, vm: VmId, vcpu: u32, share: Ppm) {
        let shares = self.vms.get_mut(vm).map(|supply| &mut supply.shares);
        if let Some(had) = shares.and_then(|shares| shares.get_mut(vcpu as usize)) {
            *had = share;
        }
    }
}
