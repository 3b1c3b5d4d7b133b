//! Identities in a run: its authority and tokens, where they are kept, and the check that calls and connections must
//! pass.

mod audit;
pub(crate) mod candidates;
mod current;
mod folder;
mod guard;
mod incoming;
mod refused;
mod sources;

pub use candidates::{
    ConnectionBounds, GuardedSocket, UnauthenticatedConnection, UnauthenticatedConnections,
};
pub(crate) use current::CheckedStream;
pub(crate) use folder::{RunIdentity, forget_identity, given_folder, token_file};
pub use folder::{make_identity, make_token_for_one, renew_token};
pub(crate) use guard::TokenGuard;
pub(crate) use incoming::{TlsConnection, accept_connections};
pub use refused::{refuse_token, refused_tokens};
