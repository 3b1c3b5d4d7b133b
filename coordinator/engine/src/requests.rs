//! The VMs that customers of the provider request: which of them have yet to be launched, and how many
//! have yet to end.

use std::collections::BTreeSet;

use dormouse_units::{RequestId, VmId};

/// VM requests of a run's customers. Only open requests are held, as there may be millions.
///
/// Use: `request_arrived` for each request in order of id, `launch_asked` when its VM is launched, `request_over`
/// when that was refused or has ended.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequests {
    next: RequestId,
    is_all: bool,
    /// Requests for which no VM has been launched yet.
    pending: BTreeSet<RequestId>,
    /// Number of launched VMs that haven't ended.
    alive: usize,
    /// VMs that have ended, to be forgotten once all consequences of their end are known.
    gone: Vec<VmId>,
}

impl OpenRequests {
    /// Makes the record of VM requests before the first one has arrived; `some` is true if any will arrive.
    pub(crate) const fn expect_requests(some: bool) -> Self {
        let next = RequestId::new(0);
        Self { next, is_all: !some, pending: BTreeSet::new(), alive: 0, gone: Vec::new() }
    }

    /// Records the arrival of a request; false if it isn't the next one.
    pub(crate) fn request_arrived(&mut self, id: RequestId) -> bool {
        let is_next = id == self.next && !self.is_all;
        if is_next {
            self.next = id.next();
            self.pending.insert(id);
        }
        is_next
    }

    /// Returns the id of the next request.
    pub(crate) const fn next(&self) -> RequestId {
        self.next
    }

    /// Records that no more requests will come.
    pub(crate) const fn no_more(&mut self) {
        self.is_all = true;
    }

    /// Returns whether all requests of the run have arrived.
    pub(crate) const fn is_all(&self) -> bool {
        self.is_all
    }

    /// Records that a request's VM is launched; false if the request is unknown, or its VM was launched before.
    pub(crate) fn launch_asked(&mut self, id: RequestId) -> bool {
        let is_pending = self.pending.remove(&id);
        self.alive += usize::from(is_pending);
        is_pending
    }

    /// Records that a request's VM was refused or has ended.
    pub(crate) fn request_over(&mut self, vm: VmId) {
        self.alive = self.alive.saturating_sub(1);
        self.gone.push(vm);
    }

    /// Takes the VMs that have ended since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.gone)
    }

    /// Returns the number of requests that haven't ended.
    pub(crate) fn open(&self) -> usize {
        self.pending.len() + self.alive
    }

    /// Returns whether all requests have arrived and ended.
    pub(crate) fn are_over(&self) -> bool {
        self.is_all && self.open() == 0
    }
}
