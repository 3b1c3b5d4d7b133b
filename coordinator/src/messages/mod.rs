//! Messages to the conductor and to sessions: from other actors, and from users of a run under way. They have a module
//! of their own so that neither side depends on the other.

pub(crate) mod api_calls;
pub(crate) mod interruption;
pub(crate) mod message;
pub(crate) mod outside;
