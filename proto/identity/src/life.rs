//! What a worker's certificate says beside its key: the name of the worker's session, and the time until which it is
//! valid.

use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::token::{to_hex, unhex_bytes};

/// Prefix of the URI that names a session, among the certificate's alternative names.
const SCHEME: &str = "dormouse:worker/";

/// One session of one worker of one run. The coordinator draws the incarnation, so that no worker can choose that of
/// another worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLife {
    /// The run that the worker has joined.
    pub run: String,
    /// The worker's name.
    pub worker: String,
    /// Number of the session. The upper half is the worker's lineage, which restarts keep; the lower half is unique to
    /// the session.
    pub incarnation: u64,
}

impl WorkerLife {
    /// Lineage of an incarnation: sessions of one lineage belong to one worker, which has shown the certificate of its
    /// earlier session.
    #[must_use]
    pub const fn lineage(incarnation: u64) -> u64 {
        incarnation >> 32
    }

    pub(crate) fn uri(&self) -> String {
        let Self { run, worker, incarnation } = self;
        let (run, worker) = (to_hex(run.as_bytes()), to_hex(worker.as_bytes()));
        format!("{SCHEME}{run}/{incarnation:016x}/{worker}")
    }

    fn parse(uri: &str) -> Option<Self> {
        let mut parts = uri.strip_prefix(SCHEME)?.split('/');
        let text = |part: &str| String::from_utf8(unhex_bytes(part)?).ok();
        let (run, incarnation, worker) = (parts.next()?, parts.next()?, parts.next()?);
        let incarnation = u64::from_str_radix(incarnation, 16).ok()?;
        let life = Self { run: text(run)?, worker: text(worker)?, incarnation };
        parts.next().is_none().then_some(life)
    }

    /// The session that a certificate names; `None`: the certificate names no session. TLS must have checked that the
    /// run's authority signed the certificate and that the peer has its key.
    #[must_use]
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        certificate.valid_uri_names().find_map(Self::parse)
    }
}

/// Prefix of the expiry among the certificate's alternative names.
const EXPIRY_SCHEME: &str = "dormouse:until/";
/// Validity of a worker's certificate. During its session a worker renews the certificate after two thirds of that
/// time.
pub const CERTIFICATE_VALID: Duration = Duration::from_hours(12);

/// URI with an expiry in seconds since 1970.
pub(crate) fn expiry_uri(until: u64) -> String {
    format!("{EXPIRY_SCHEME}{until}")
}

/// Expiry of a worker's certificate in seconds since 1970; `None`: the certificate is of an older version. TLS accepts
/// the certificate for a day longer, so that a late worker can learn of the expiry and may renew the certificate while
/// the run still knows the worker.
#[must_use]
pub fn certificate_end(certificate: &CertificateDer<'_>) -> Option<u64> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate.valid_uri_names().find_map(|uri| uri.strip_prefix(EXPIRY_SCHEME)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authority, WorkerKey, WorkerLife};

    #[test]
    fn a_life_reads_back_whatever_its_worker_is_called() {
        for worker in ["w", "a/b", "Bär 7%", ""] {
            let life =
                WorkerLife { run: "j60".into(), worker: worker.into(), incarnation: u64::MAX };
            assert_eq!(WorkerLife::parse(&life.uri()).as_ref(), Some(&life));
        }
        for nonsense in
            ["", "dormouse:worker/", "dormouse:worker/6a/1/6a/6a", "dormouse:worker/x/1/6a"]
        {
            assert_eq!(WorkerLife::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_certificate_says_when_it_is_over() {
        let authority = Authority::generate().expect("an authority");
        let life = WorkerLife { run: "r".into(), worker: "w".into(), incarnation: 7 };
        let key = WorkerKey::generate().expect("a key").public();
        for until in [0, 1_800_000_000, u64::MAX] {
            let made = authority.certify(&life, None, until, &key).expect("a certificate");
            let certificate = CertificateDer::from(made);
            assert_eq!(certificate_end(&certificate), Some(until));
            assert_eq!(WorkerLife::of_certificate(&certificate).as_ref(), Some(&life));
        }
        assert_eq!(certificate_end(authority.certificate()), None);
        // What a worker keeps of one that is over is worth nothing.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("credential");
        for (until, is_good) in [(crate::now_s() + 60, true), (crate::now_s(), false)] {
            let key = WorkerKey::generate().expect("a key");
            let made = authority.certify(&life, None, until, &key.public()).expect("a certificate");
            key.certified(made, authority.fingerprint()).save(&file).expect("room");
            let kept = crate::Credential::load(&file, authority.fingerprint());
            assert_eq!(kept.is_some(), is_good, "{until}");
        }
    }
}
