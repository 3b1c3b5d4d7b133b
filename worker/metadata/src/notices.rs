//! Announcements to a VM.

use crate::{Interruption, MaintenanceEvent, Taking, UnixTime};

/// The announcements to a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notices {
    /// The interruption that is to come.
    pub(crate) interruption: Option<Interruption>,
    /// Since when the VM is likely to be taken.
    pub(crate) rebalance: Option<UnixTime>,
    /// Maintenance of the VM's host that is planned, or was.
    pub(crate) maintenance: Option<MaintenanceEvent>,
    /// The number of times that the announcements have changed.
    pub(crate) changes: u64,
    /// Whether the VM has approved the interruption, as Azure's can.
    pub(crate) is_approved: bool,
}

impl Notices {
    /// The time at which the VM ends for good, if that is announced.
    pub(crate) fn terminates_at(&self) -> Option<UnixTime> {
        let terminates = |it: &Interruption| it.taking == Taking::Terminate;
        self.interruption.filter(terminates).map(|it| it.at)
    }
}
