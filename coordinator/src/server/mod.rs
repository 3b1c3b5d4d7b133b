//! The calls of workers: authentication of the callers, sessions, checkpoints and contents.

pub(crate) mod api;
mod content_calls;
pub(crate) mod desk;
mod network_calls;
pub(crate) mod refusals;
