//! Announcements to a VM: of its interruption, and of its host's maintenance as EC2 announces it.

use crate::{InterruptionNotice, TakingAction, UnixTime};

/// Announcements to a VM that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VmAnnouncements {
    /// The announced interruption; `None`: none is announced.
    pub(crate) interruption: Option<InterruptionNotice>,
    /// Instant since which the VM is known to be likely to be interrupted; `None`: it is not.
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

/// A maintenance event with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceEvent {
    /// EC2's code of the work, such as `system-reboot`.
    pub code: String,
    /// State of the event.
    pub state: MaintenanceState,
    /// Earliest time at which the event begins.
    pub not_before: UnixTime,
    /// Latest time at which the event ends.
    pub not_after: UnixTime,
    /// Latest time at which the event begins.
    pub deadline: UnixTime,
}

/// State of a maintenance event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceState {
    /// The maintenance is planned or under way.
    Active,
    /// The maintenance is over.
    Completed,
    /// The maintenance was cancelled.
    Canceled,
}

impl MaintenanceState {
    /// EC2's word for the state.
    #[must_use]
    pub const fn ec2_word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }
}

impl MaintenanceEvent {
    /// EC2's id of the event; it depends on the code and the times, not on the state.
    pub(crate) fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.code.as_bytes());
        for at in [self.not_before, self.not_after, self.deadline] {
            hasher.update(&at.as_micros().to_le_bytes());
        }
        format!("instance-event-0{}", &hasher.finalize().to_hex()[..16])
    }
}
