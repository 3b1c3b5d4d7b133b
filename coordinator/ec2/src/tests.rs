//! Tests of EC2's semantics.

mod actions_page;
mod fleets;
mod instances;
mod networks;
mod properties;
mod recorded;
mod records;
mod spot;
