//! EC2's API as a policy: boto3, terraform and other clients call it, over the emulated provider.
//!
//! A call that changes something is an event of the run, and its decisions are launches and ends of VMs like those of
//! any policy; a call that reads is a query of the desk at the present instant. A call or parameter that isn't
//! supported is refused by its name.

mod absent_resources;
mod announcements;
mod call_checks;
mod call_json;
mod calls;
mod catalogue_answers;
mod cells;
mod cloud_config;
mod config_text;
mod credit_terms;
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
mod instance_credits;
mod instance_seat;
mod instance_table;
mod ip_block;
mod kept_files;
mod key_fingerprint;
mod key_pairs;
mod launch_spec;
mod launch_template;
mod listing;
mod live_rules;
mod names;
mod network;
mod network_records;
mod pool_market;
mod private_network;
mod resource_tags;
mod run_instances;
mod run_secret;
mod session;
mod spot_actions;
mod spot_answers;
mod spot_fleet;
mod spot_request;
mod storage;
mod storage_records;
mod tag_calls;
mod traffic_rules;
mod upkeep;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use announcements::{AnnouncedChange, InstanceAnnouncement};
pub use cells::{GrantedRole, InstanceFacts, call_event};
pub use cloud_config::{CloudConfig, ConfiguredFile};
pub use desk::{ApiDesk, DeskConfig};
pub use desk_policy::DeskPolicy;
pub use run_secret::{RoleKey, RunSecret};
pub use session::{Ec2Session, InstanceBill};
pub use traffic_rules::{AllowedTraffic, PrivateNetwork, TrafficPeer};
