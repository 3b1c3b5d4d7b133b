//! Certificate authority of a run.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, PublicKeyData,
    SanType, SignatureAlgorithm,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};

use crate::life::expiry_uri;
use crate::token::AuthorityFingerprint;
use crate::{IdentityError, TokenId, WorkerLife, make_folder, write_private};

/// Validity of the certificates of an authority and its coordinator: longer than any run, and longer than a testbed
/// that is set up once is used.
const VALID: Duration = Duration::days(366);
/// Tolerated difference between hosts' clocks, and also the time for which a worker whose certificate has expired can
/// still connect to learn of that.
const SKEW: Duration = Duration::days(1);
/// Name in the coordinator's certificate, independent of its address.
pub(crate) const COORDINATOR: &str = "coordinator.dormouse";
/// File name of an authority's certificate in its folder.
const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority.key";

/// A run's certificate authority: its certificate, whose fingerprint is in all tokens of the run,
/// and its key, which never leaves the coordinator's host.
pub struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Authority").field(&self.fingerprint()).finish()
    }
}

fn named_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - SKEW, now + VALID);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Certificate parameters of every authority. Only the key differs between authorities, so the parameters need not be
/// read from a file.
fn authority_params() -> CertificateParams {
    let mut params = named_params("dormouse authority");
    // Path length 0: the signed certificates can't sign others.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// An Ed25519 public key received from a peer.
struct PublicKey<'a>(&'a [u8]);

impl PublicKeyData for PublicKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl Authority {
    /// Generates an authority.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Certificate`].
    pub fn generate() -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let signed = CertifiedIssuer::self_signed(authority_params(), key)?;
        let (certificate, pem) = (signed.der().clone(), signed.pem());
        // The same key again, since the certificate and the issuer are stored separately.
        let key = KeyPair::from_pem(&signed.key().serialize_pem())?;
        Ok(Self { certificate, pem, issuer: Issuer::new(authority_params(), key) })
    }

    /// Saves the authority in a folder that only its owner can enter.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`].
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        make_folder(folder).map_err(IdentityError::file(folder))?;
        let key = self.issuer.key().serialize_pem();
        for (file, text) in [(KEY, &key), (CERTIFICATE, &self.pem)] {
            let path = folder.join(file);
            write_private(&path, text.as_bytes()).map_err(IdentityError::file(&path))?;
        }
        Ok(())
    }

    /// Loads the authority from a folder; `None` if the folder has none, or an incomplete one.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`], [`IdentityError::Content`].
    pub fn load(folder: &Path) -> Result<Option<Self>, IdentityError> {
        let (path, key_path) = (folder.join(CERTIFICATE), folder.join(KEY));
        let read = |path: &Path| match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IdentityError::file(path)(error)),
        };
        // The certificate is written last.
        let (Some(pem), Some(key)) = (read(&path)?, read(&key_path)?) else { return Ok(None) };
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| IdentityError::content(&path, error))?;
        let key =
            KeyPair::from_pem(&key).map_err(|error| IdentityError::content(&key_path, error))?;
        let issuer = Issuer::new(authority_params(), key);
        Ok(Some(Self { certificate, pem, issuer }))
    }

    /// Fingerprint of the authority's certificate, which tokens carry.
    #[must_use]
    pub fn fingerprint(&self) -> AuthorityFingerprint {
        AuthorityFingerprint::from_certificate(&self.certificate)
    }

    pub(crate) const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A new certificate of the coordinator, followed by the authority's, and its key.
    pub(crate) fn coordinator(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivatePkcs8KeyDer<'static>), IdentityError> {
        let mut params = named_params("dormouse coordinator");
        params.subject_alt_names = vec![SanType::DnsName(COORDINATOR.try_into()?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let signed = params.signed_by(&key, &self.issuer)?;
        let chain = vec![signed.der().clone(), self.certificate.clone()];
        Ok((chain, PrivatePkcs8KeyDer::from(key.serialize_der())))
    }

    /// Certificate (DER) for a session of a worker that has this public key and joined with this token, valid until
    /// this time (seconds since 1970). A peer can use the certificate only with the private key.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`], [`IdentityError::Certificate`].
    pub fn certify(
        &self,
        life: &WorkerLife,
        token: Option<TokenId>,
        until: u64,
        public_key: &[u8],
    ) -> Result<Vec<u8>, IdentityError> {
        if public_key.len() != 32 {
            return Err(IdentityError::Key { bytes: public_key.len() });
        }
        let mut params = named_params("dormouse worker");
        params.subject_alt_names =
            vec![SanType::URI(life.uri().try_into()?), SanType::URI(expiry_uri(until).try_into()?)];
        let end =
            i64::try_from(until).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        // At least now on this clock, since the given end may come from another clock.
        let end = end.and_then(|end| end.max(OffsetDateTime::now_utc()).checked_add(SKEW));
        params.not_after = end.map_or(params.not_after, |end| end.min(params.not_after));
        if let Some(token) = token {
            params.subject_alt_names.push(SanType::URI(token.uri().try_into()?));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok(params.signed_by(&PublicKey(public_key), &self.issuer)?.der().to_vec())
    }
}
