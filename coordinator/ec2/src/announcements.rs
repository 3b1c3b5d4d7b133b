//! What EC2 tells of instances through EventBridge: changes of state, warnings of interruptions, recommendations.

use dormouse_units::Time;

/// A change of an instance that EC2 announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedChange {
    /// The instance is in this state now.
    State(&'static str),
    /// EC2 interrupts the instance after the notice: it will stop, hibernate or terminate, as this word says.
    Interruption(&'static str),
    /// EC2 recommends replacing the instance.
    Rebalance,
}

/// An event that EC2 announces about an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceAnnouncement {
    /// Time of the announcement.
    pub at: Time,
    /// The account of the instance.
    pub account: String,
    /// The region of the instance.
    pub region: String,
    /// The zone of the instance.
    pub zone: String,
    /// The instance's id.
    pub instance: String,
    /// The change that is announced.
    pub change: AnnouncedChange,
}
