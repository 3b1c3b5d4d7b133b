//! Sessions of workers: how each begins, which messages pass over any number of connections, and how it ends.

pub(crate) mod greeting;
pub(crate) mod lives;
pub(crate) mod outbound;
pub(crate) mod session;
