//! Validity of workers' certificates.

use std::time::Duration;

use rustls::pki_types::CertificateDer;

/// Prefix of the expiry among the certificate's alternative names.
const SCHEME: &str = "dormouse:until/";
/// Validity of a worker's certificate. During its session a worker renews the certificate after two thirds of that
/// time.
pub const CERTIFICATE_VALID: Duration = Duration::from_hours(12);

/// URI with an expiry in seconds since 1970.
pub(crate) fn uri(until: u64) -> String {
    format!("{SCHEME}{until}")
}

/// Expiry of a worker's certificate in seconds since 1970; `None`: the certificate is of an older version. TLS accepts
/// the certificate for a day longer, so that a late worker can learn of the expiry and may renew the certificate while
/// the run still knows the worker.
#[must_use]
pub fn certificate_end(certificate: &CertificateDer<'_>) -> Option<u64> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate.valid_uri_names().find_map(|uri| uri.strip_prefix(SCHEME)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authority, WorkerKey, WorkerLife};

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
