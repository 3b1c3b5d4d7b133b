//! Networks of an account: records that route nothing. Each region begins with a default VPC that has a subnet in each
//! zone, an internet gateway and a default security group.

mod gateways;
mod groups;
mod interfaces;
mod region;
mod reservations;
mod rule_calls;
mod subnets;
mod vpcs;
