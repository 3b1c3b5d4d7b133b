//! The wire protocol: converts its messages to and from the types of the engine, of experiments and of the log, and
//! numbers and acknowledges the messages of one session. Nothing here waits, or knows who is connected.

pub(crate) mod announce;
pub(crate) mod given;
pub(crate) mod handed;
mod instance;
pub(crate) mod link;
pub(crate) mod own_program;
pub(crate) mod parallel;
pub(crate) mod wire;
