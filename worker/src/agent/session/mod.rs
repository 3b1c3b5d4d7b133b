//! The session with the coordinator: numbers, acknowledgements, heartbeats, reconnects.

mod client;
mod complaints;
mod credentials;
mod redial;
mod transport;

pub use client::{Dial, Heard, keep};
pub use credentials::Credentials;
pub use transport::{DialError, Remote, Transport};
