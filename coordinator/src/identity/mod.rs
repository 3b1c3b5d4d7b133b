//! Who is who in a run: its authority and tokens, where they are kept, and the check that calls and
//! connections must pass.

mod audit;
pub(crate) mod candidates;
mod current;
mod folder;
mod guard;
mod incoming;
mod refused;
mod sources;

pub use candidates::{Candidate, Candidates, ConnectionBounds, Socket};
pub(crate) use current::Current;
pub(crate) use folder::{RunIdentity, forget, given, token_file};
pub use folder::{make_identity, make_token_for_one, renew_token};
pub(crate) use guard::Guard;
pub(crate) use incoming::{Secured, incoming};
pub use refused::{refuse_token, refused_tokens};
