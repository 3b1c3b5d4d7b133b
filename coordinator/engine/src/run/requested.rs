//! The VMs that customers of the provider request, as a run sees them.

use dormouse_model::TenantWork;
use dormouse_units::{RequestId, Time, VmId};

use super::Run;

impl Run {
    /// Returns the id of the next VM request.
    #[must_use]
    pub const fn next_request(&self) -> RequestId {
        self.requests.next()
    }

    /// Returns whether no more VM requests will come.
    #[must_use]
    pub const fn all_requested(&self) -> bool {
        self.requests.is_all()
    }

    /// Returns whether a customer's request launched a VM.
    pub(super) fn is_requested(&self, vm: VmId) -> bool {
        self.sharing.work_on(vm) == Some(TenantWork::Requests)
    }

    /// Returns the request for which a VM is launched; `None`: it belongs to another tenant.
    pub(super) fn request_of(&self, vm: VmId) -> Option<RequestId> {
        self.sharing.request_of(vm)
    }

    /// Forgets the VMs of requests that are over, as there may be millions.
    pub(super) fn forget_requests(&mut self) {
        for vm in self.requests.take_gone() {
            self.vms.remove(vm);
            let settled = self.provider.forget_vm(vm);
            self.owner_mut(vm).add_settled(settled);
        }
    }

    /// Records that a request is over: its VM was refused or has ended.
    pub(super) fn request_is_over(&mut self, now: Time, vm: VmId) {
        if !self.is_requested(vm) {
            return;
        }
        self.requests.request_over(vm);
        self.owner_mut(vm).count_finished(now);
    }
}
