//! Observation of a run: the service that observers call, its feed of events, and the client that calls the service
//! from another process.

pub(crate) mod feed;
pub(crate) mod observe;
pub(crate) mod remote;
