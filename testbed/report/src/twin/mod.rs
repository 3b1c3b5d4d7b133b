//! Comparison of a recorded run with its twin ([`dormouse_analysis::twin`]), from its folder, as
//! text and as `twin.csv`.

mod compare;
mod error;
mod table;

pub(crate) use compare::distance_of;
pub use compare::twin_of;
pub use error::TwinError;
pub use table::csv;
pub use table::table;
