//! EC2's API as a policy: boto3, terraform and other clients call it, over the emulated provider.
//!
//! A call that changes something is an event of the run, and its decisions are launches and ends of VMs like those of
//! any policy; a call that reads is a query of the desk at the present instant. A call or parameter that isn't
//! supported is refused by its name.

mod absent_resources;
mod announcements;
mod call_json;
mod calls;
mod catalogue_answers;
mod desk;
mod desk_policy;
mod desk_records;
mod ec2_instance;
mod fleet;
mod fleet_answers;
mod fleet_history;
mod group_rules;
mod instance_actions;
mod instance_answers;
mod instance_attributes;
mod instance_seat;
mod ip_block;
mod key_pairs;
mod launch_spec;
mod launch_template;
mod listing;
mod names;
mod network;
mod network_records;
mod pool_market;
mod run_instances;
mod session;
mod spot_actions;
mod spot_answers;
mod spot_fleet;
mod spot_request;
mod tag_calls;
mod upkeep;
mod volumes;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use announcements::{AnnouncedChange, InstanceAnnouncement};
pub use desk::{ApiDesk, DeskConfig};
pub use desk_policy::DeskPolicy;
pub use session::{Ec2Session, InstanceBill};
