//! Who this worker is to the coordinator: what it joins with, and what it was given.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use dormouse_identity::{Credential, IdentityError, TOKEN_KEY, Token, WorkerKey, client_config};
use dormouse_proto::v1::{JoinReply, JoinRequest, coordinator_client::CoordinatorClient};
use rustls::ClientConfig;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::agent::report::explain;

/// The file in the worker's directory that keeps the certificate of its last life.
const FILE: &str = "credential";

/// The token of the run and the certificates of this worker's lives. Nothing of it is said to
/// anybody who has not proved to be the coordinator of the token's run.
#[derive(Clone, Debug)]
pub struct Credentials(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    token: Token,
    file: PathBuf,
    /// The certificate of this life, or before it has one that of the last.
    shown: Mutex<Option<Credential>>,
}

impl Credentials {
    /// Those of a life that begins, of a worker with this directory.
    #[must_use]
    pub fn new(token: Token, root: &std::path::Path) -> Self {
        let file = root.join(FILE);
        let shown = Mutex::new(Credential::load(&file, token.authority));
        Self(Arc::new(Shared { token, file, shown }))
    }

    /// How a connection is made: with the certificate that there is, and to nobody but the token's
    /// coordinator.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub(crate) fn tls(&self) -> Result<Arc<ClientConfig>, IdentityError> {
        let shown = self.0.shown.lock().unwrap_or_else(PoisonError::into_inner);
        client_config(self.0.token.authority, shown.as_ref())
    }

    /// Joins the run over a connection: the incarnation of this life, whose certificate all further
    /// connections show.
    ///
    /// # Errors
    /// The coordinator refuses, or is gone.
    pub(crate) async fn join(&self, channel: Channel, worker: &str) -> Result<u64, Status> {
        let key = WorkerKey::generate().map_err(|e| Status::internal(explain(&e)))?;
        let public_key = key.public().into();
        let mut request = Request::new(JoinRequest { worker: worker.to_owned(), public_key });
        if let Some(token) = self.0.token.header() {
            request.metadata_mut().insert(TOKEN_KEY, token);
        }
        let reply = CoordinatorClient::new(channel).join(request).await?;
        let JoinReply { certificate, incarnation } = reply.into_inner();
        let credential = key.certified(certificate.to_vec(), self.0.token.authority);
        if let Err(error) = credential.save(&self.0.file) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "started again, this worker can't show that it is the same: it is taken back once \
                 its former life is given up"
            );
        }
        *self.0.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(credential);
        Ok(incarnation)
    }
}
