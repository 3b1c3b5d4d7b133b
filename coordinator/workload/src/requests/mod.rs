//! Streams of requests for VMs: what a provider's customers ask for, and when.
//!
//! A [`RequestSource`] is written down, read from a file or made by a [`RequestModel`]; a [`RequestStream`] gives its
//! requests in the order of their times, with memory that does not grow with their number, except for traces, which are
//! put in order first. [`RequestWriter`] writes the requests of any source as CSV, which reads back to the identical
//! stream.

mod arrivals;
mod check;
mod file;
mod law;
mod model;
mod offer;
mod statistics;
mod stream;
mod writer;

pub use arrivals::RequestArrivals;
pub use check::RequestFlaw;
pub use file::{RequestFile, RequestFileError, RequestFormat, RequestRules, RequestsRead};
pub use law::DurationLaw;
pub use model::{RequestModel, TypeShare};
pub use offer::{Offer, OfferRefusal, VmSize};
pub use statistics::RequestStatistics;
pub use stream::{RequestError, RequestStream, RequestsWanted};
pub use stream::{RequestSource, RequestSpec};
pub use writer::RequestWriter;
