//! A worker's key and the certificate issued for it.

use std::fs;
use std::path::Path;

use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData as _};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::token::{to_hex, unhex_bytes};
use crate::{AuthorityFingerprint, IdentityError, certificate_end, now_s, write_private};

/// Key of a worker's session that has no certificate yet. The key never leaves the worker's host.
pub struct WorkerKey(KeyPair);

impl std::fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkerKey(not shown)")
    }
}

/// Certificate of a worker's session, with its key.
#[derive(Clone)]
pub struct Credential {
    /// Fingerprint of the authority that signed the certificate.
    pub authority: AuthorityFingerprint,
    certificate: CertificateDer<'static>,
    /// Private key as PKCS #8 DER.
    key: Vec<u8>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(not shown)")
    }
}

impl WorkerKey {
    /// Generates a key.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Certificate`].
    pub fn generate() -> Result<Self, IdentityError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ED25519)?))
    }

    /// Public key for a certificate request.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        self.0.der_bytes().to_vec()
    }

    /// The key with the certificate (DER) that an authority issued for the key.
    #[must_use]
    pub fn certified(self, certificate: Vec<u8>, authority: AuthorityFingerprint) -> Credential {
        let key = self.0.serialize_der();
        Credential { authority, certificate: certificate.into(), key }
    }
}

impl Credential {
    pub(crate) fn chain(&self) -> (Vec<CertificateDer<'static>>, PrivatePkcs8KeyDer<'static>) {
        (vec![self.certificate.clone()], PrivatePkcs8KeyDer::from(self.key.clone()))
    }

    /// Saves the credential in a file that only its owner can read, so that a restarted worker can prove that it is the
    /// same worker.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`].
    pub fn save(&self, path: &Path) -> Result<(), IdentityError> {
        let text =
            format!("{:?}\n{}\n{}\n", self.authority, to_hex(&self.certificate), to_hex(&self.key));
        write_private(path, text.as_bytes()).map_err(IdentityError::file(path))
    }

    /// Loads a saved credential of this authority; `None` if the credential is damaged, expired or of another run.
    #[must_use]
    pub fn load(path: &Path, authority: AuthorityFingerprint) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut lines = text.lines();
        if lines.next()? != format!("{authority:?}") {
            return None;
        }
        let certificate: CertificateDer<'static> = unhex_bytes(lines.next()?)?.into();
        let is_over = certificate_end(&certificate).is_some_and(|end| end <= now_s());
        let key = unhex_bytes(lines.next()?)?;
        (!is_over).then_some(Self { authority, certificate, key })
    }
}
