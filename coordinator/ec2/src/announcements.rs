//! What EC2 tells of instances through EventBridge: changes of state, warnings of interruptions, recommendations.

use dormouse_units::Time;

/// What is told of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedChange {
    /// It is in this state now.
    State(&'static str),
    /// EC2 interrupts it after the notice, and does this to it then.
    Interruption(&'static str),
    /// EC2 recommends replacing it.
    Rebalance,
}

/// Something that EC2 tells of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceAnnouncement {
    /// When it is told.
    pub at: Time,
    /// The account of the instance.
    pub account: String,
    /// The region of the instance.
    pub region: String,
    /// The zone of the instance.
    pub zone: String,
    /// The instance's id.
    pub instance: String,
    /// What is told of it.
    pub change: AnnouncedChange,
}
