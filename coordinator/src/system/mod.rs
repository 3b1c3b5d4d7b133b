//! The system under a coordinator, each part of which a simulation can replace: disk, wall clock, threads, random
//! numbers and connections; and the signals that this process receives.

pub(crate) mod descriptors;
mod disk;
pub(crate) mod listener;
pub(crate) mod objects;
pub(crate) mod session_limits;
pub(crate) mod signals;
pub(crate) mod world;
