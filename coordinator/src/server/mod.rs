//! The calls of workers: who calls and whether that may be, sessions, checkpoints and contents.

pub(crate) mod api;
mod content_calls;
pub(crate) mod desk;
pub(crate) mod refusals;
