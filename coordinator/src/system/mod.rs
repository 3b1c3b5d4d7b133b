//! The system under a coordinator, each part of which a simulation has another of: disk, wall clock, threads,
//! chance and connections; and the signals that this process is sent.

pub(crate) mod descriptors;
mod disk;
pub(crate) mod listener;
pub(crate) mod objects;
pub(crate) mod session_limits;
pub(crate) mod signals;
pub(crate) mod world;
