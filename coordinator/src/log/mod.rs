//! The log of a run: written by the journal, durable before anything depends on it, and fed to the policies again by
//! the replay.

pub(crate) mod journal;
pub(crate) mod replay;
