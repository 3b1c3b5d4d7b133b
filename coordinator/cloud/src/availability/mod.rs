//! Number of spot VMs that a provider can sell, over time.

mod read;
mod trace;

pub use trace::SpotAvailability;
