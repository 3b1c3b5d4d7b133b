//! The crate as both ends of a connection use it.

mod handshake;
