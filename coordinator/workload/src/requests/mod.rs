//! Streams of requests for VMs: what a provider's customers ask for, and when.
//!
//! A [`RequestSource`] is written down, read from a CSV file or made by a [`RequestModel`]; a
//! [`RequestStream`] gives its requests in the order of their times, with memory that does not grow with
//! their number. [`RequestWriter`] writes any of them as CSV, which reads back to the identical stream.

mod arrivals;
mod check;
mod csv;
mod law;
mod model;
mod offer;
mod source;
mod statistics;
mod stream;

pub use arrivals::Arrivals;
pub use check::RequestFlaw;
pub use csv::{RequestCsv, RequestCsvError, RequestWriter};
pub use law::DurationLaw;
pub use model::{RequestModel, TypeShare};
pub use offer::{Offer, Refusal};
pub use source::{RequestSource, RequestSpec};
pub use statistics::RequestStatistics;
pub use stream::{RequestError, RequestStream, RequestsWanted};
