//! Spot prices and checkpoint schemes: Khatua, Mukherjee, "Application-Centric Resource Provisioning for Amazon
//! EC2 Spot Instances" (Euro-Par 2013), Figures 7 to 10.
//!
//! A case is whose prices, which times of the job, and which bid or all of them; the words of a figure are the schemes.

mod cases;
mod records;
mod starts;
mod sweep;
mod tally;

pub(super) use cases::{check, simulated};
pub(super) use records::PriceFiles;

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");
