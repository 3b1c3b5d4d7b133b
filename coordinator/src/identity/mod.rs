//! Who is who in a run: its authority and tokens, where they are kept, and the check that calls and
//! connections must pass.

pub(crate) mod candidates;
mod folder;
mod guard;
mod incoming;
mod sources;

pub(crate) use folder::{RunIdentity, forget, given, token_file};
pub use folder::{make_identity, renew_token};
pub(crate) use guard::Guard;
pub(crate) use incoming::{Secured, incoming};
