//! Announcements to a VM.

use crate::{InterruptionNotice, MaintenanceEvent, TakingAction, UnixTime};

/// Announcements to a VM that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VmAnnouncements {
    /// The announced interruption; `None`: none is announced.
    pub(crate) interruption: Option<InterruptionNotice>,
    /// Instant since which the VM is likely to be taken away.
    pub(crate) rebalance: Option<UnixTime>,
    /// Planned or past maintenance of the VM's host.
    pub(crate) maintenance: Option<MaintenanceEvent>,
    /// Number of changes of the announcements so far.
    pub(crate) changes: u64,
    /// True if the VM has approved the interruption, as Azure allows.
    pub(crate) is_approved: bool,
}

impl VmAnnouncements {
    /// Time of the announced termination of the VM, if any.
    pub(crate) fn terminates_at(&self) -> Option<UnixTime> {
        let terminates = |it: &InterruptionNotice| it.taking == TakingAction::Terminate;
        self.interruption.filter(terminates).map(|it| it.at)
    }
}
