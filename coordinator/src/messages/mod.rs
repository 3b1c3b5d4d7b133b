//! The messages that reach the conductor, and those by which it reaches sessions: what actors ask of each other,
//! and what users ask of a run that goes on. Here, so that neither side needs the other.

pub(crate) mod interruption;
pub(crate) mod message;
pub(crate) mod outside;
