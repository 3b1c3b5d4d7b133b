//! The semantics of EC2, each with its right value.

mod fleets;
mod instances;
mod properties;
mod recorded;
mod records;
mod spot;
