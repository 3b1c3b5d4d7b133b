//! The semantics of EC2, each with its right value.

mod actions_page;
mod fleets;
mod instances;
mod networks;
mod properties;
mod recorded;
mod records;
mod spot;
