//! Requests for VMs and where they come from.

mod source;
mod stream;

pub use source::{RequestSource, RequestSpec};
pub use stream::RequestStream;
