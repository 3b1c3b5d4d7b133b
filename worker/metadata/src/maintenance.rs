//! Maintenance of a VM's host, as EC2 announces it.

use crate::UnixTime;

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
