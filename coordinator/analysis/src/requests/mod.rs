//! The requests for VMs of a run: what is written of them while it goes, and what they come to for the
//! provider.

mod csv;
mod figures;
mod ledger;
mod quantiles;
mod tables;
mod usage;

pub use csv::RequestsCsv;
pub use figures::{Figures, Lost, Tally};
pub use ledger::{Ended, Ledger, RequestEnd};
pub use quantiles::Quantiles;
pub use tables::RequestsTables;
pub use usage::{Bin, Flow, Level, Usage};
