//! The gRPC service for workers: identifies each caller by the certificate that its connection has shown, and passes
//! the call to the desk.

use std::sync::Arc;

use dormouse_identity::{Authority, Role, TokenId, WorkerLife};
use dormouse_proto::{TAKES_PACKED, v1};
use dormouse_units::HostId;
use tonic::{Request, Response, Status, Streaming};

use crate::identity::candidates::ConnectionCaller;
use crate::identity::{CheckedStream, TokenGuard};
use crate::server::desk::WorkerDesk;
use crate::sessions::outbound::WorkerOutbound;
use crate::storage::transfers::Download;

#[derive(Debug)]
pub(crate) struct ClientApi {
    /// Signs the certificates of workers.
    pub(crate) authority: Authority,
    pub(crate) guard: TokenGuard,
    pub(crate) desk: Arc<WorkerDesk>,
}

#[tonic::async_trait]
impl v1::coordinator_server::Coordinator for ClientApi {
    type SessionStream = WorkerOutbound;
    type GetCheckpointStream = Download;

    async fn join(
        &self,
        request: Request<v1::JoinRequest>,
    ) -> Result<Response<v1::JoinReply>, Status> {
        let caller = request.extensions().get::<ConnectionCaller>();
        let v1::JoinRequest { worker, public_key, renews } = request.get_ref().clone();
        if renews {
            return self.renew_certificate(caller, &public_key);
        }
        let shown = caller.and_then(|caller| caller.life.as_deref());
        let mut token = None;
        let life = self.desk.join_if(&worker, shown, |is_former| match caller {
            // Who has joined once comes back without a token, whose time may be over, unless that is refused, as long as the
            // certificate is good.
            Some(caller)
                if is_former
                    && caller.came_in_time
                    && self.guard.check_joined_with(caller.token).is_ok() =>
            {
                token = caller.token;
                caller.stay_connected()
            }
            _ => {
                token = Some(self.guard.demand_role(&request, Role::Worker, "join")?.id);
                Ok(())
            }
        })?;
        let from = caller.and_then(|caller| caller.address);
        self.guard.note_access("join", Role::Worker, (from, token, Some(&*worker)), None);
        self.certify_life(&life, token, &public_key).map(Response::new)
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<WorkerOutbound>, Status> {
        let (life, caller) = self.guard.find_certified(&request)?;
        let is_itself = |is_itself| match is_itself {
            // Where there are too many, the connection is closed, and so is the session.
            true => _ = caller.candidate.admit_connection(),
            false => caller.candidate.count_refused(),
        };
        // A session ends once its worker's token is refused.
        let (guard, of) = (self.guard.clone(), Arc::clone(&life));
        let caller_now = caller.clone();
        // And once its certificate's time is over: it comes again, and can have it renewed before.
        let inbound = CheckedStream::new(request.into_inner(), move || {
            guard.check_joined_with(caller_now.token)?;
            let in_time = guard.check_time(&of, &caller_now);
            in_time.map_err(|status| Status::unavailable(status.message()))
        });
        self.desk.talk_to_worker(&life, inbound, is_itself).await.map(Response::new)
    }

    async fn put_checkpoint(
        &self,
        request: Request<Streaming<v1::CheckpointChunk>>,
    ) -> Result<Response<v1::CheckpointReceipt>, Status> {
        let host = self.host_of(&request)?;
        self.desk.take_checkpoint(host, request.into_inner()).await.map(Response::new)
    }

    async fn get_checkpoint(
        &self,
        request: Request<v1::CheckpointRef>,
    ) -> Result<Response<Self::GetCheckpointStream>, Status> {
        let host = self.host_of(&request)?;
        let packed = takes_packed(&request);
        self.desk.give_checkpoint(host, request.get_ref(), packed).await.map(Response::new)
    }
}

/// Returns whether the calling worker accepts compressed chunks.
pub(crate) fn takes_packed<T>(request: &Request<T>) -> bool {
    let (name, value) = TAKES_PACKED;
    request.metadata().get(name).is_some_and(|said| said == value)
}

impl ClientApi {
    /// Issues a certificate for this session of a worker and this key; `token` is the one with which the worker joined.
    fn certify_life(
        &self,
        life: &WorkerLife,
        token: Option<TokenId>,
        public_key: &[u8],
    ) -> Result<v1::JoinReply, Status> {
        let until = self.guard.end_of_new(life);
        let certificate = self.authority.certify(life, token, until, public_key);
        let certificate =
            certificate.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let valid_s = u32::try_from(self.guard.certificates_valid().as_secs()).unwrap_or(u32::MAX);
        let incarnation = life.incarnation;
        Ok(v1::JoinReply { certificate: certificate.into(), incarnation, valid_s })
    }

    /// Renews the certificate of the worker's session that a connection has shown. A recently expired certificate, as
    /// far as TLS accepts it, is enough while the run has the worker: its host may have slept.
    fn renew_certificate(
        &self,
        caller: Option<&ConnectionCaller>,
        public_key: &[u8],
    ) -> Result<Response<v1::JoinReply>, Status> {
        let shown = caller.and_then(|caller| Some((caller, caller.life.as_deref()?)));
        let (caller, life) = shown.ok_or_else(|| {
            Status::unauthenticated("a worker has to use the certificate that it asks to renew")
        })?;
        let who = (caller.address, caller.token, Some(&*life.worker));
        let note =
            |refused: Option<&str>| self.guard.note_access("renew", Role::Worker, who, refused);
        let checked = self.guard.check_joined_with(caller.token);
        let checked = checked.and_then(|()| self.desk.host_of_life(life).map(drop));
        checked.inspect_err(|status| note(Some(status.message())))?;
        caller.stay_connected()?;
        note(None);
        self.certify_life(life, caller.token, public_key).map(Response::new)
    }

    /// Returns the host of the worker whose certificate a call's connection has shown.
    pub(crate) fn host_of<T>(&self, request: &Request<T>) -> Result<HostId, Status> {
        let (life, caller) = self.guard.find_certified(request)?;
        let host = self.desk.host_of_life(&life)?;
        caller.stay_connected()?;
        Ok(host)
    }
}
