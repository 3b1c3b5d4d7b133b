//! How many spot VMs a provider has to give, and when.

mod read;
mod trace;

pub use trace::Availability;
