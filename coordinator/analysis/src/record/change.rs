//! Changes of a record in a step, for those who follow a run as it goes.

use dormouse_units::{Attempt, TaskId, VmId};

use super::{JobHistory, RequestHistory, VmHistory};

/// A change in the life of a VM, a task, a parallel job or a request.
///
/// The record has what else is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The VM runs from now on: it has booted, or is resumed.
    Runs(VmId),
    /// The VM ran and does not any more: it is hibernated, or gone.
    Stands(VmId),
    /// An attempt at a task or job was sent to a VM.
    Sent(TaskId, Attempt, VmId),
    /// The attempt has executed its first instruction, or goes on from its checkpoint.
    Began(TaskId, Attempt),
    /// The attempt is over, done or not.
    Left(TaskId, Attempt, VmId),
    /// The scheduler heard of a parallel job.
    JobHeard(TaskId),
    /// A customer of the provider requested a VM, which has this id if it is granted.
    Requested(VmId),
    /// A request got its VM.
    Granted(VmId),
}

/// All that came to its end in a step.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    /// The parallel jobs that have ended, in the order in which their scheduler heard of it.
    pub jobs: Vec<JobHistory>,
    /// The requests that are over.
    pub requests: Vec<RequestHistory>,
    /// VMs that have ended and that the record does not keep.
    pub(super) vms: Vec<VmHistory>,
}

impl Closed {
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
        self.requests.clear();
        self.vms.clear();
    }
}
