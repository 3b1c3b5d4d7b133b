//! The VMs that customers of the provider request, as a run sees them.

use dormouse_model::TenantWork;
use dormouse_units::{RequestId, Time, VmId};

use super::Run;

impl Run {
    /// The id of the next VM that is requested.
    #[must_use]
    pub const fn next_request(&self) -> RequestId {
        self.requests.next()
    }

    /// Whether nothing more will be requested.
    #[must_use]
    pub const fn all_requested(&self) -> bool {
        self.requests.is_all()
    }

    /// Whether a VM is one that a customer of the provider requested.
    pub(super) fn is_requested(&self, vm: VmId) -> bool {
        self.sharing.work_on(vm) == Some(TenantWork::Requests)
    }

    /// The request for which a VM is launched; `None`: it is another tenant's VM.
    pub(super) fn request_of(&self, vm: VmId) -> Option<RequestId> {
        self.sharing.request_of(vm)
    }

    /// Forgets the VMs of requests that are over: there may be millions of them.
    pub(super) fn forget_requests(&mut self) {
        for vm in self.requests.take_gone() {
            self.vms.remove(vm);
            let settled = self.provider.forget_vm(vm);
            self.owner_mut(vm).add_settled(settled);
        }
    }

    /// A request has come to its end: its VM is gone, or was refused.
    pub(super) fn request_is_over(&mut self, now: Time, vm: VmId) {
        if !self.is_requested(vm) {
            return;
        }
        self.requests.request_over(vm);
        self.owner_mut(vm).count_finished(now);
    }
}
