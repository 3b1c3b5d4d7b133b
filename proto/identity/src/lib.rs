//! Identities in a run: its authority, the certificates that the authority signs, the tokens that admit people and
//! workers, TLS 1.3 based on these, and the seals of the checkpoints that each host stores. The cryptography is ring's,
//! through rustls, webpki and rcgen.

mod authority;
mod channel;
mod error;
mod life;
mod private;
mod role;
mod seal;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod worker;

pub use authority::Authority;
pub use channel::{Dialled, channel, dial};
pub use error::IdentityError;
pub use life::WorkerLife;
pub use life::{CERTIFICATE_VALID, certificate_end};
pub use private::{make_folder, write_private};
pub use role::Role;
pub use seal::{CheckpointHead, ImageKey};
pub use tls::{
    Impostor, ShownCredential, client_config, client_config_of, is_impostor, server_config,
};
pub use token::TokenId;
pub use token::{AuthorityFingerprint, TOKEN_KEY, Token, TokenError, now_s};
pub use worker::{Credential, WorkerKey};
