//! Spot prices and checkpoint schemes: Khatua, Mukherjee, "Application-Centric Resource
//! Provisioning for Amazon EC2 Spot Instances" (Euro-Par 2013), Figures 7 to 10.
//!
//! A case names the series of prices, the variant of the job, and a bid or all of them; the last
//! word of a cell is the scheme.

mod blocks;
mod cases;
mod means;
mod records;
mod settings;
mod sweep;
mod tally;
mod variant;

pub(super) use cases::{CaseInputs, CaseJobs, check, simulated};
pub(super) use records::PriceFiles;
pub(super) use settings::RecordSettings;

/// Data file of this paper: its experiments, printed values and claims.
pub(super) const DATA: &str = include_str!("paper.toml");
