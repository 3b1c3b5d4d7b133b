//! The session with the coordinator: numbers, acknowledgements, heartbeats, reconnects.

mod client;
mod complaints;
mod credentials;
mod numbering;
mod redial;

pub(crate) use client::{Dial, Heard, keep};
pub(crate) use credentials::Credentials;
pub(crate) use numbering::Inbox;
