//! Changes that a step makes to a record, for those who follow a run as it goes.

use dormouse_units::{Attempt, TaskId, VmId};

use super::{JobHistory, RequestHistory, VmHistory};

/// A change in the life of a VM, a task, a parallel job or a request; the record has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// The VM has booted or is resumed: it runs from now on.
    Runs(VmId),
    /// The VM is hibernated or gone: it does not run any more.
    Stands(VmId),
    /// An attempt at a task or job was sent to a VM.
    Sent(TaskId, Attempt, VmId),
    /// The attempt has executed its first instruction, or continues from its checkpoint.
    Began(TaskId, Attempt),
    /// The attempt is over, done or not.
    Left(TaskId, Attempt, VmId),
    /// The scheduler learned of a parallel job.
    JobHeard(TaskId),
    /// A customer of the provider requested a VM, which gets this id if it is granted.
    Requested(VmId),
    /// The request with this VM id got its VM.
    Granted(VmId),
}

/// Histories of everything that ended in a step.
#[derive(Clone, Debug, Default)]
pub struct ClosedHistories {
    /// Parallel jobs that ended, in the order in which their scheduler learned of it.
    pub jobs: Vec<JobHistory>,
    /// Requests that are over.
    pub requests: Vec<RequestHistory>,
    /// Ended VMs that the record does not keep.
    pub(super) vms: Vec<VmHistory>,
}

impl ClosedHistories {
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.requests.clear();
        self.vms.clear();
    }
}
