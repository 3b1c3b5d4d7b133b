//! TLS 1.3 with certificates of one authority on both sides.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::{Authority, AuthorityFingerprint, Credential, IdentityError};

/// Application protocol (ALPN) of all connections.
const HTTP_2: &[u8] = b"h2";

/// Error: the peer is not the coordinator of the token's run. Nothing was sent to the peer.
#[derive(Debug)]
pub struct Impostor;

impl fmt::Display for Impostor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "what answers is not the coordinator of the token's run, and nothing was sent to it",
        )
    }
}

impl Error for Impostor {}

/// True if a connection failed with [`Impostor`]: the peer's certificate is not trusted.
#[must_use]
pub fn is_impostor(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        // An I/O error does not name what it holds as its cause.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if held.is_some_and(|held| is_impostor(held)) {
            return true;
        }
        next = error.source();
    }
    false
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Certificate verifier that trusts only the authority with this fingerprint.
#[derive(Debug)]
struct PinnedAuthority {
    authority: AuthorityFingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedAuthority {
    fn check_authority(
        &self,
        end_entity: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Option<()> {
        let authority =
            chain.iter().find(|it| AuthorityFingerprint::from_certificate(it) == self.authority)?;
        let anchor = webpki::anchor_from_trusted_cert(authority).ok()?;
        let certificate = webpki::EndEntityCert::try_from(end_entity).ok()?;
        let usage = webpki::KeyUsage::server_auth();
        certificate
            .verify_for_usage(self.algorithms.all, &[anchor], &[], now, usage, None, None)
            .ok()?;
        let name = ServerName::try_from(crate::authority::COORDINATOR).ok()?;
        certificate.verify_is_valid_for_subject_name(&name).ok()
    }
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.check_authority(end_entity, intermediates, now) {
            Some(()) => Ok(ServerCertVerified::assertion()),
            None => Err(CertificateError::Other(OtherError(Arc::new(Impostor))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The credential that new connections present; each connection uses the one that is set at its beginning.
#[derive(Debug, Default)]
pub struct ShownCredential(Mutex<Option<Arc<CertifiedKey>>>);

impl ShownCredential {
    /// Sets the credential for all new connections.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Tls`]: the credential's key is invalid.
    pub fn show(&self, credential: &Credential) -> Result<(), IdentityError> {
        let (chain, key) = credential.chain();
        let key = CertifiedKey::from_der(chain, PrivateKeyDer::Pkcs8(key), &crypto_provider())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        Ok(())
    }

    fn shown_key(&self) -> Option<Arc<CertifiedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesClientCert for ShownCredential {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.shown_key()
    }

    fn has_certs(&self) -> bool {
        self.shown_key().is_some()
    }
}

/// Client configuration: the client sends nothing before the server has proved to belong to this
/// authority, and then presents its credential, if it has one.
///
/// # Errors
///
/// [`IdentityError::Tls`].
pub fn client_config(
    authority: AuthorityFingerprint,
    credential: Option<&Credential>,
) -> Result<Arc<ClientConfig>, IdentityError> {
    let shown = ShownCredential::default();
    credential.map_or(Ok(()), |credential| shown.show(credential))?;
    client_config_of(authority, Arc::new(shown))
}

/// Client configuration like that of [`client_config`], with the credential that is set when a connection is made.
///
/// # Errors
///
/// [`IdentityError::Tls`].
pub fn client_config_of(
    authority: AuthorityFingerprint,
    shown: Arc<ShownCredential>,
) -> Result<Arc<ClientConfig>, IdentityError> {
    let provider = crypto_provider();
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedAuthority { authority, algorithms }));
    let mut config = builder.with_client_cert_resolver(shown);
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Server configuration: the server presents a certificate of the authority and accepts workers' certificates. Clients
/// without a certificate may present a token instead.
///
/// # Errors
///
/// [`IdentityError::Certificate`], [`IdentityError::Tls`], [`IdentityError::Verifier`].
pub fn server_config(authority: &Authority) -> Result<Arc<ServerConfig>, IdentityError> {
    let provider = crypto_provider();
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone())?;
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let (chain, key) = authority.coordinator()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))?;
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    // No session resumption: every connection is authenticated anew.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
