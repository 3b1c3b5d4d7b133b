//! The VMs that customers of the provider request: which of them have yet to be launched, and how many
//! have yet to end.

use std::collections::BTreeSet;

use dormouse_units::{RequestId, VmId};

/// The requests of a run. What is held of them is what is open.
#[derive(Clone, Debug)]
pub(crate) struct OpenRequests {
    next: RequestId,
    is_all: bool,
    /// Those for which no VM was asked for yet.
    pending: BTreeSet<RequestId>,
    /// How many VMs there are.
    alive: usize,
    /// VMs that are gone, to be forgotten once all that came of their end is known.
    gone: Vec<VmId>,
}

impl OpenRequests {
    /// Before the first of them; none will come if none is expected.
    pub(crate) const fn expect_requests(some: bool) -> Self {
        let next = RequestId::new(0);
        Self { next, is_all: !some, pending: BTreeSet::new(), alive: 0, gone: Vec::new() }
    }

    /// One comes; false if it is not the next.
    pub(crate) fn request_arrived(&mut self, id: RequestId) -> bool {
        let is_next = id == self.next && !self.is_all;
        if is_next {
            self.next = id.next();
            self.pending.insert(id);
        }
        is_next
    }

    /// The id of the next.
    pub(crate) const fn next(&self) -> RequestId {
        self.next
    }

    /// No more will come.
    pub(crate) const fn no_more(&mut self) {
        self.is_all = true;
    }

    /// Whether no more will come.
    pub(crate) const fn is_all(&self) -> bool {
        self.is_all
    }

    /// A VM is asked for; false if there is no such request, or it had its VM.
    pub(crate) fn launch_asked(&mut self, id: RequestId) -> bool {
        let is_pending = self.pending.remove(&id);
        self.alive += usize::from(is_pending);
        is_pending
    }

    /// One has come to its end: its VM was refused, or is gone.
    pub(crate) fn request_over(&mut self, vm: VmId) {
        self.alive = self.alive.saturating_sub(1);
        self.gone.push(vm);
    }

    /// The VMs that are gone since this was last asked.
    pub(crate) fn take_gone(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.gone)
    }

    /// Those that have not come to their ends.
    pub(crate) fn open(&self) -> usize {
        self.pending.len() + self.alive
    }

    /// Whether all have come, and to their ends.
    pub(crate) fn are_over(&self) -> bool {
        self.is_all && self.open() == 0
    }
}
