//! The gRPC service for whoever looks on at a run: how it goes, its events, its end.

use std::time::Duration;

use dormouse_proto::v1;
use ractor::ActorRef;
use ractor::rpc::CallResult;
use tonic::{Request, Response, Status};

use crate::conductor::ConductorMsg;
use crate::feed::EventFeed;
use crate::given::Given;
use crate::live::Progress;

/// How long the conductor may take to answer before it is taken for dead.
const ANSWER: Duration = Duration::from_secs(10);
/// The longest reason for an end: it goes into the log.
const LONGEST_REASON: usize = 255;

#[derive(Debug)]
pub(crate) struct ObserveApi {
    pub(crate) experiment: String,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) events: EventFeed,
}

fn ended() -> Status {
    Status::unavailable("the coordinator is ending")
}

#[tonic::async_trait]
impl v1::observe_server::Observe for ObserveApi {
    type EventsStream = Given<v1::EventLine>;

    async fn status(
        &self,
        _: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusReply>, Status> {
        let CallResult::Success(progress) =
            self.conductor.call(ConductorMsg::Status, Some(ANSWER)).await.map_err(|_| ended())?
        else {
            return Err(ended());
        };
        let Progress { now, tasks, completed, running, vms, workers, cost, over, .. } = progress;
        Ok(Response::new(v1::StatusReply {
            experiment: self.experiment.clone(),
            now_us: now.as_micros(),
            tasks,
            completed,
            running,
            vms,
            workers,
            cost_nanos: u64::try_from(cost.as_nanos()).unwrap_or(0),
            over,
        }))
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        self.events.read(request.into_inner()).map(Response::new)
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        let why = request.into_inner().why;
        if why.len() > LONGEST_REASON || why.chars().any(char::is_control) {
            return Err(Status::invalid_argument(format!(
                "a reason has at most {LONGEST_REASON} bytes and no control characters"
            )));
        }
        let why = if why.is_empty() { "the user ended it".to_owned() } else { why };
        self.conductor.cast(ConductorMsg::Cancel { why }).map_err(|_| ended())?;
        Ok(Response::new(v1::CancelReply {}))
    }
}
