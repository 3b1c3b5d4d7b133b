//! The session with the coordinator: numbers, acknowledgements, heartbeats, reconnects.

mod client;
mod numbering;

pub(crate) use client::{Dial, Heard, keep};
