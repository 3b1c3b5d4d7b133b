//! The VMs that customers of the provider request: how many there are yet to end.

use dormouse_units::RequestId;

/// The requests of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests {
    next: RequestId,
    open: usize,
    is_all: bool,
}

impl Requests {
    /// Before the first of them; none will come if none is expected.
    pub(crate) const fn expected(some: bool) -> Self {
        Self { next: RequestId::new(0), open: 0, is_all: !some }
    }

    /// One comes; false if it is not the next.
    pub(crate) fn request(&mut self, id: RequestId) -> bool {
        let is_next = id == self.next && !self.is_all;
        if is_next {
            self.next = id.next();
            self.open += 1;
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

    /// One has come to its end.
    pub(crate) const fn over(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Those that have not.
    pub(crate) const fn open(&self) -> usize {
        self.open
    }

    /// Whether all have come, and to their ends.
    pub(crate) const fn are_over(&self) -> bool {
        self.is_all && self.open == 0
    }
}
