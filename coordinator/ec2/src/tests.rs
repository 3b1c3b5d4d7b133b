//! Tests of EC2's semantics.

mod actions_page;
mod bounds;
mod credits;
mod fleets;
mod instances;
mod live;
mod networks;
mod properties;
mod recorded;
mod records;
mod spot;
mod volumes;
