//! Tests of the crate from both ends of a connection.

mod handshake;
