//! Credentials of a worker: the token with which it joins a run, and the certificate that it then gets.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use dormouse_identity::{
    Credential, IdentityError, ShownCredential, TOKEN_KEY, Token, WorkerKey, client_config_of,
};
use dormouse_proto::v1::{JoinReply, JoinRequest, coordinator_client::CoordinatorClient};
use rustls::ClientConfig;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::agent::report::explain_error;

/// File in the worker's directory with the certificate of its last session.
const FILE: &str = "credential";

/// Token of the run, and the certificates of this worker's sessions. They are shown only to the verified coordinator of
/// the token's run.
#[derive(Clone, Debug)]
pub struct WorkerCredentials(Arc<SharedCredentials>);

#[derive(Debug)]
struct SharedCredentials {
    token: Token,
    file: PathBuf,
    /// Certificate of this session, or, before there is one, of the earlier session.
    shown: Arc<ShownCredential>,
    /// Time at which the certificate of this session must be renewed, by the clock of this host; `None` before there is
    /// a certificate.
    due: Mutex<Option<SystemTime>>,
}

/// Returns when to renew a certificate that is valid for `valid` from `now` on: early enough for a worker that is disconnected for
/// a third of that time.
fn renewal_time(now: SystemTime, valid: Duration) -> Option<SystemTime> {
    if valid.is_zero() { None } else { now.checked_add(valid * 2 / 3) }
}

impl WorkerCredentials {
    /// Makes the credentials of a new session of the worker whose directory is `root`.
    #[must_use]
    pub fn new(token: Token, root: &std::path::Path) -> Self {
        let file = root.join(FILE);
        let shown = ShownCredential::default();
        if let Some(kept) = Credential::load(&file, token.authority) {
            // A key that is damaged is as good as none.
            let _ = shown.show(&kept);
        }
        Self(Arc::new(SharedCredentials {
            token,
            file,
            shown: Arc::new(shown),
            due: Mutex::default(),
        }))
    }

    /// Returns the TLS configuration of connections: they show the current certificate, and accept only the token's
    /// coordinator.
    ///
    /// # Errors
    ///
    /// TLS can't be set up.
    pub(crate) fn tls_config(&self) -> Result<Arc<ClientConfig>, IdentityError> {
        client_config_of(self.0.token.authority, Arc::clone(&self.0.shown))
    }

    /// Returns whether the certificate of this session must be renewed now.
    pub(crate) fn is_due(&self) -> bool {
        let due = self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.is_some_and(|due| SystemTime::now() >= due)
    }

    /// Renews the certificate of this session over a connection that has shown it.
    ///
    /// # Errors
    ///
    /// The coordinator refuses, or is gone.
    pub(crate) async fn renew_certificate(&self, channel: Channel) -> Result<(), Status> {
        let request = JoinRequest { renews: true, ..JoinRequest::default() };
        self.certify_key(channel, Request::new(request)).await.map(drop)
    }

    /// Joins the run over a connection; returns the incarnation of this session, whose certificate all further
    /// connections show.
    ///
    /// # Errors
    ///
    /// The coordinator refuses, or is gone.
    pub(crate) async fn join_run(&self, channel: Channel, worker: &str) -> Result<u64, Status> {
        let request = JoinRequest { worker: worker.to_owned(), ..JoinRequest::default() };
        let mut request = Request::new(request);
        if let Some(token) = self.0.token.header() {
            request.metadata_mut().insert(TOKEN_KEY, token);
        }
        self.certify_key(channel, request).await
    }

    /// Gets a certificate for a new key, which all further connections show.
    async fn certify_key(
        &self,
        channel: Channel,
        mut request: Request<JoinRequest>,
    ) -> Result<u64, Status> {
        let key = WorkerKey::generate().map_err(|e| Status::internal(explain_error(&e)))?;
        request.get_mut().public_key = key.public().into();
        let reply = CoordinatorClient::new(channel).join(request).await?;
        let JoinReply { certificate, incarnation, valid_s } = reply.into_inner();
        let credential = key.certified(certificate.to_vec(), self.0.token.authority);
        if let Err(error) = credential.save(&self.0.file) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "if it is started again, this worker can't prove to be the same: it can join again \
                 once the coordinator has given up the old one"
            );
        }
        self.0.shown.show(&credential).map_err(|e| Status::internal(explain_error(&e)))?;
        let due = renewal_time(SystemTime::now(), Duration::from_secs(valid_s.into()));
        *self.0.due.lock().unwrap_or_else(PoisonError::into_inner) = due;
        Ok(incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_with_a_third_of_its_time_left() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(renewal_time(now, hours(12)), Some(now + hours(8)));
        assert_eq!(renewal_time(now, Duration::ZERO), None);
    }
}
