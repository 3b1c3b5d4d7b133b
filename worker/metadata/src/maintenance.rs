//! Maintenance of a VM's host, as EC2 announces it.

use crate::UnixTime;

/// A maintenance event, with its times by the calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceEvent {
    /// EC2's word for what will be done, such as `system-reboot`.
    pub code: String,
    /// What has become of the event.
    pub state: MaintenanceState,
    /// The earliest time at which it begins.
    pub not_before: UnixTime,
    /// The latest time at which it ends.
    pub not_after: UnixTime,
    /// The latest time at which it begins.
    pub deadline: UnixTime,
}

/// What has become of a maintenance event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceState {
    /// It is to come, or under way.
    Active,
    /// It is over.
    Completed,
    /// It will not be.
    Canceled,
}

impl MaintenanceState {
    /// EC2's word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
        }
    }
}

impl MaintenanceEvent {
    /// EC2's id of the event: the same for the same code and times, whatever has become of it.
    pub(crate) fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.code.as_bytes());
        for at in [self.not_before, self.not_after, self.deadline] {
            hasher.update(&at.as_micros().to_le_bytes());
        }
        format!("instance-event-0{}", &hasher.finalize().to_hex()[..16])
    }
}
