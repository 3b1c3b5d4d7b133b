//! Events about instances that EC2 publishes through EventBridge: changes of state, warnings of interruptions,
//! recommendations.

use dormouse_units::Time;

/// Content of an announcement about an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedChange {
    /// The instance is in this state now.
    State(&'static str),
    /// EC2 will interrupt the instance after the notice, by this action.
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
    /// What is announced about the instance.
    pub change: AnnouncedChange,
}
