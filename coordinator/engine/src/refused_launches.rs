//! Refused launches, and freed room of which their tenants haven't been notified yet.

use std::collections::BTreeSet;

use dormouse_units::{TypeName, VmId};

/// Refused launches, and room that has become free since; their tenants are to be notified.
#[derive(Debug, Default)]
pub(crate) struct RefusedLaunches {
    vms: BTreeSet<VmId>,
    /// True if a tenant's VM has ended while another tenant had a refused launch.
    gave_back: bool,
    /// Types with limited capacity that had a spot VM end while a launch was refused.
    freed_types: BTreeSet<TypeName>,
}

impl RefusedLaunches {
    /// Records that the launch of `vm` was refused.
    pub(crate) fn add_refused(&mut self, vm: VmId) {
        self.vms.insert(vm);
    }

    pub(crate) fn contains(&self, vm: VmId) -> bool {
        self.vms.contains(&vm)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.vms.is_empty()
    }

    /// Records that a VM has ended; `is_anothers` says whether a refused VM belongs to a different tenant.
    pub(crate) fn vm_ended(&mut self, is_anothers: impl FnMut(&VmId) -> bool) {
        self.gave_back |= self.vms.iter().any(is_anothers);
    }

    /// Records that a spot VM of a type with limited capacity has ended.
    pub(crate) fn place_came_free(&mut self, kind: &TypeName) {
        if !self.is_empty() {
            self.freed_types.insert(kind.clone());
        }
    }

    /// Returns whether room was freed since the last call.
    pub(crate) fn take_gave_back(&mut self) -> bool {
        std::mem::take(&mut self.gave_back)
    }

    /// Removes and returns the types whose capacity was freed since the last call.
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
