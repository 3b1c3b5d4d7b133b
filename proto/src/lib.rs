//! The wire between coordinator and workers: generated code, and the secret that every call
//! carries. Nothing decides here.

mod secret;

pub use secret::{HOST_KEY, SECRET_KEY, Secret, SecretError};

/// Version 1 of the wire.
#[allow(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::missing_errors_doc,
    clippy::semicolon_if_nothing_returned,
    clippy::use_self,
    unreachable_pub,
    reason = "generated code"
)]
pub mod v1 {
    tonic::include_proto!("dormouse.v1");
}

/// What both sides of a session must speak; raised when they could misunderstand each other.
pub const PROTOCOL: u32 = 7;
