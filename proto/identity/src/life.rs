//! Name of a worker's session in its certificate.

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

    /// The session that a certificate names. TLS must have checked that the run's authority signed the certificate and
    /// that the peer has its key.
    #[must_use]
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        certificate.valid_uri_names().find_map(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
