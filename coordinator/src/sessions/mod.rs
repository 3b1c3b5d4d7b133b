//! Sessions of workers: how each begins, what is said over any number of connections, and how it ends.

pub(crate) mod greeting;
pub(crate) mod lives;
pub(crate) mod outbound;
pub(crate) mod session;
