//! The session with the coordinator: numbers, acknowledgements, heartbeats, reconnects.

mod client;
mod complaints;
mod credentials;
mod redial;
mod transport;

pub use client::{DialTarget, SessionEvent, keep_session};
pub use credentials::WorkerCredentials;
pub use transport::{DialError, GrpcTransport, SessionTransport};
