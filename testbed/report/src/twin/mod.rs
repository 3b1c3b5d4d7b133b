//! Comparison of a recorded run with its twin ([`dormouse_analysis::twin`]), from its folder, as
//! text and as `twin.csv`.

mod compare;
mod csv;
mod error;
mod table;

pub(crate) use compare::distance_of;
pub use compare::twin_of;
pub use csv::csv;
pub use error::TwinError;
pub use table::table;
