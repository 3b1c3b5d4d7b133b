//! Launches that were refused, and what whoever asked for them is yet to hear of.

use std::collections::BTreeSet;

use dormouse_units::{TypeName, VmId};

/// The VMs that were asked for and not granted, and what has become free since.
#[derive(Debug, Default)]
pub(crate) struct RefusedLaunches {
    vms: BTreeSet<VmId>,
    /// Whether a tenant's VM has ended while another tenant had been refused one.
    gave_back: bool,
    /// Scarce types of which a spot VM has left its place while somebody had been refused one.
    freed_types: BTreeSet<TypeName>,
}

impl RefusedLaunches {
    /// Notes that the launch of `vm` was refused.
    pub(crate) fn add_refused(&mut self, vm: VmId) {
        self.vms.insert(vm);
    }

    pub(crate) fn contains(&self, vm: VmId) -> bool {
        self.vms.contains(&vm)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.vms.is_empty()
    }

    /// A VM has ended; `is_anothers` tells VMs of other tenants than its own.
    pub(crate) fn vm_ended(&mut self, is_anothers: impl FnMut(&VmId) -> bool) {
        self.gave_back |= self.vms.iter().any(is_anothers);
    }

    /// A spot VM of a scarce type has left its place.
    pub(crate) fn place_came_free(&mut self, kind: &TypeName) {
        if !self.is_empty() {
            self.freed_types.insert(kind.clone());
        }
    }

    /// Whether there is room that whoever was refused has not heard of. They hear of it now.
    pub(crate) fn take_gave_back(&mut self) -> bool {
        std::mem::take(&mut self.gave_back)
    }

    /// The types that have become free since the last call.
    pub(crate) fn take_freed_types(&mut self) -> BTreeSet<TypeName> {
        std::mem::take(&mut self.freed_types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_free_is_heard_once_and_only_by_whoever_was_refused() {
        let mut refused = RefusedLaunches::default();
        let kind = TypeName::from("a");
        refused.place_came_free(&kind);
        refused.vm_ended(|_| true);
        assert!(!refused.take_gave_back() && refused.take_freed_types().is_empty());
        refused.add_refused(VmId::new(3));
        assert!(refused.contains(VmId::new(3)) && !refused.contains(VmId::new(4)));
        refused.vm_ended(|vm| *vm == VmId::new(4));
        assert!(!refused.take_gave_back(), "its own tenant's VM ended");
        refused.vm_ended(|vm| *vm == VmId::new(3));
        refused.place_came_free(&kind);
        assert!(refused.take_gave_back() && !refused.take_gave_back());
        assert_eq!(refused.take_freed_types(), BTreeSet::from([kind]));
        assert!(refused.take_freed_types().is_empty());
    }
}
