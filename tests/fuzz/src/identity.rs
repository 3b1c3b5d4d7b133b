//! Tokens, certificates and keys, as peers show them.

use std::sync::LazyLock;

use dormouse_identity::{Authority, Role, Token, WorkerLife};
use rustls::pki_types::CertificateDer;

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::generate().expect("chance"));

/// A token that is read is written as the same token; a certificate of any bytes names a worker's session or none; a
/// name and a key of any bytes are certified or refused.
pub(crate) fn identity(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(token) = text.parse::<Token>() {
        let again: Token = token.line().parse().expect("it reads back");
        assert!(again.is(token.line().trim().as_bytes()) && token.header().is_some());
    }
    let _ = text.parse::<Role>();
    let _ = WorkerLife::of_certificate(&CertificateDer::from(bytes));
    let (name, key) = bytes.split_at(bytes.len().saturating_sub(32));
    let worker = String::from_utf8_lossy(name).into_owned();
    let life = WorkerLife { run: "run".to_owned(), worker, incarnation: 1 };
    if let Ok(certificate) = AUTHORITY.certify(&life, None, u64::MAX, key) {
        let named = WorkerLife::of_certificate(&CertificateDer::from(certificate));
        assert_eq!(named, Some(life), "a certificate names its worker");
    }
}
