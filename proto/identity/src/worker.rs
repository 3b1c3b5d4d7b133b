//! A worker's own key, and the certificate that it has been given for it.

use std::fs;
use std::path::Path;

use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData as _};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::token::{hex, unhex_bytes};
use crate::{Fingerprint, IdentityError, certificate_end, now_s, write_private};

/// The key of a life that has no certificate yet. It never leaves the worker's host.
pub struct WorkerKey(KeyPair);

impl std::fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkerKey(not shown)")
    }
}

/// The certificate of a life, and its key.
#[derive(Clone)]
pub struct Credential {
    /// The authority that signed it.
    pub authority: Fingerprint,
    certificate: CertificateDer<'static>,
    /// PKCS #8, DER.
    key: Vec<u8>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(not shown)")
    }
}

impl WorkerKey {
    /// A new key.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Certificate`].
    pub fn generate() -> Result<Self, IdentityError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ED25519)?))
    }

    /// The public half, as a certificate is asked for with it.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        self.0.der_bytes().to_vec()
    }

    /// The key with the certificate (DER) that an authority gave for it.
    #[must_use]
    pub fn certified(self, certificate: Vec<u8>, authority: Fingerprint) -> Credential {
        let key = self.0.serialize_der();
        Credential { authority, certificate: certificate.into(), key }
    }
}

impl Credential {
    pub(crate) fn chain(&self) -> (Vec<CertificateDer<'static>>, PrivatePkcs8KeyDer<'static>) {
        (vec![self.certificate.clone()], PrivatePkcs8KeyDer::from(self.key.clone()))
    }

    /// Keeps it in a file for its owner alone, so that a worker that is started again can show that
    /// it is the same.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`].
    pub fn save(&self, path: &Path) -> Result<(), IdentityError> {
        let text =
            format!("{:?}\n{}\n{}\n", self.authority, hex(&self.certificate), hex(&self.key));
        write_private(path, text.as_bytes()).map_err(IdentityError::file(path))
    }

    /// The credential that is kept there, if it is of this authority. One that is damaged, of another run, or whose time is over is
    /// worth nothing.
    #[must_use]
    pub fn load(path: &Path, authority: Fingerprint) -> Option<Self> {
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
