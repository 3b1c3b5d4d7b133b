//! Files of requests in several formats: one reader, which detects the format from the content.
//!
//! [`RequestFile`] gives the requests of a CSV file of ours, of other tables of VMs (the Azure Public
//! Dataset, the Azure trace for packing, any with columns of known names) and of the events of
//! Google's cluster traces of 2011 and 2019, in order of time.

mod cells;
mod error;
mod events;
mod format;
mod google;
mod held;
mod kinds;
mod own;
mod read;
mod rules;
mod table;

pub use error::RequestFileError;
pub use format::RequestFormat;
pub(super) use own::HEADER;
pub use read::RequestFile;
pub use rules::{RequestRules, RequestsRead};
