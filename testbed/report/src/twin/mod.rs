//! A recorded run beside its twin ([`dormouse_analysis::twin`]): played again from its folder, and as a table
//! and `twin.csv`.

mod compare;
mod csv;
mod error;
mod table;

pub(crate) use compare::distance_of;
pub use compare::twin_of;
pub use csv::csv;
pub use error::TwinError;
pub use table::table;
