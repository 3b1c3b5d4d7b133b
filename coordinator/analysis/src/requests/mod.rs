//! Requests for VMs of a run: the table that is written during a run, and the requests' figures.

mod csv;
mod figures;
mod ledger;
mod quantiles;
mod usage;

pub use csv::RequestsCsv;
pub use csv::RequestsTables;
pub use figures::{LostRevenue, RequestFigures, RequestTally};
pub use ledger::{EndedRequest, RequestEnd, RequestLedger};
pub use quantiles::TimeQuantiles;
pub use usage::{HostUsage, UsageBin, UsageFlow, UsageLevel};
