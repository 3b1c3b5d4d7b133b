//! What a benchmark measures of a figure, beside a peer or a floor, and the line of JSON by which it says so.
//!
//! A benchmark takes samples by turns ([`Samples::by_turns`]) and reports them ([`Samples::report_costs`],
//! [`Samples::report_rates`]). Reported samples go to the file that [`FILE`] names; where that is not set, as
//! when a benchmark is run by hand, they go nowhere. `scripts/bench` sets it and judges what was said.

mod line;
mod samples;

pub use line::{Better, FILE, Line, ReportError};
pub use samples::{Samples, median};
