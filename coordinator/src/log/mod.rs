//! The log of a run: written by the journal, durable before anything hangs on it, and played again by the replay.

pub(crate) mod journal;
pub(crate) mod replay;
