//! Samples of a benchmark's figure, taken beside those of a peer or a floor, and the JSON line that reports them.
//!
//! A benchmark takes samples by turns ([`Samples::by_turns`]) and reports them ([`Samples::report_costs`],
//! [`Samples::report_rates`]). Reported samples go to the file that [`FILE`] names; where that is not set, as when a
//! benchmark is run by hand, they go nowhere. `scripts/bench` sets it and judges the reported samples.

mod line;
mod samples;

pub use line::{Better, FILE, Line, ReportError};
pub use samples::{Samples, median};
