//! The processors that VMs were said to have, where spot VMs are in the background of others, and what share of them.

use dormouse_units::{Ppm, VmId, Window};
use thin_vec::ThinVec;

/// What was last said of each VM; nothing, where spot VMs have processors of their own.
#[derive(Debug, Default)]
pub(crate) struct VmSupplies {
    vms: Window<Box<VmSupply>, VmId>,
}

/// What was last said of a VM.
#[derive(Clone, Debug)]
struct VmSupply {
    processors: ThinVec<u32>,
    /// The share of its processor that each vCPU has.
    shares: ThinVec<Ppm>,
}

impl VmSupplies {
    /// A VM with this number of vCPUs is launched: it has yet to be said which processors it has.
    pub(crate) fn vm_launched(&mut self, vm: VmId, vcpus: u32) {
        let shares = std::iter::repeat_n(Ppm::ONE, vcpus as usize).collect();
        self.vms.insert(vm, Box::new(VmSupply { processors: ThinVec::new(), shares }));
    }

    /// A VM is gone.
    pub(crate) fn vm_ended(&mut self, vm: VmId) {
        self.vms.remove(vm);
    }

    /// A VM has left its processors.
    pub(crate) fn processors_left(&mut self, vm: VmId) {
        if let Some(supply) = self.vms.get_mut(vm) {
            supply.processors.clear();
        }
    }

    /// Whether a VM that is there was said to have other processors than these, or none.
    pub(crate) fn are_others(&self, vm: VmId, processors: &[u32]) -> bool {
        self.vms.get(vm).is_some_and(|supply| supply.processors[..] != *processors)
    }

    /// It is said which processors a VM has.
    pub(crate) fn processors_placed(&mut self, vm: VmId, processors: &[u32]) {
        if let Some(supply) = self.vms.get_mut(vm) {
            supply.processors = processors.into();
        }
    }

    /// The share of its processor that a vCPU has.
    pub(crate) fn share_of(&self, vm: VmId, vcpu: u32) -> Option<Ppm> {
        self.vms.get(vm)?.shares.get(vcpu as usize).copied()
    }

    /// A vCPU is told its share.
    pub(crate) fn set_share(&mut self, vm: VmId, vcpu: u32, share: Ppm) {
        let shares = self.vms.get_mut(vm).map(|supply| &mut supply.shares);
        if let Some(had) = shares.and_then(|shares| shares.get_mut(vcpu as usize)) {
            *had = share;
        }
    }
}
