//! Looking on at a run: the service that observers call, the feed of events that it gives them, and the client
//! that calls it from another process.

pub(crate) mod feed;
pub(crate) mod observe;
pub(crate) mod remote;
