//! The number of spot VMs that a provider has to give, over time.

mod read;
mod trace;

pub use trace::Availability;
