//! The session with the coordinator: numbers, acknowledgements, heartbeats, reconnects.

mod client;
mod complaints;
mod credentials;
mod numbering;
mod redial;
mod transport;

pub use client::{Dial, Heard, keep};
pub use transport::{DialError, Transport};

pub(crate) use credentials::Credentials;
pub(crate) use numbering::Inbox;
pub(crate) use transport::Remote;
