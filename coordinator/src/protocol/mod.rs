//! The words of the wire: between those of the engine, of experiments and of the log, and the numbers and
//! acknowledgements that go with them over one session. Nothing here waits, or knows who is connected.

pub(crate) mod announce;
pub(crate) mod given;
pub(crate) mod link;
pub(crate) mod own_program;
pub(crate) mod parallel;
pub(crate) mod wire;
