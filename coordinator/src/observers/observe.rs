//! The gRPC service for whoever looks on at a run: how it goes, its events, its end.

use std::time::Duration;

use dormouse_identity::Role;
use dormouse_proto::v1;
use ractor::rpc::CallResult;
use ractor::{ActorRef, MessagingErr};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::identity::{Current, Guard};
use crate::messages::interruption::{Injection, reason};
use crate::messages::message::ConductorMsg;
use crate::messages::outside::Asked;
use crate::observers::feed::EventFeed;
use crate::protocol::given::Given;
use crate::status::progress::{Awaited, Posted, Progress};
use crate::time::outage;

/// How long whoever asks waits for the conductor, which may think, before it is told how the run went
/// when that was shown last.
const ANSWER: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct ObserveApi {
    pub(crate) experiment: String,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) board: watch::Receiver<Posted>,
    pub(crate) events: EventFeed,
    pub(crate) guard: Guard,
}

fn ended() -> Status {
    Status::unavailable("the coordinator is shutting down")
}

/// What the conductor answered once it was durable, however long that took.
fn answered<T>(
    asked: Result<CallResult<Result<T, String>>, MessagingErr<ConductorMsg>>,
) -> Result<T, Status> {
    match asked {
        Ok(CallResult::Success(answer)) => answer.map_err(Status::failed_precondition),
        _ => Err(ended()),
    }
}

/// Has a parallel job submitted to a run that is open, and waits until that is durable.
///
/// # Errors
///
/// There can be no such job (`InvalidArgument`), the run does not take it (`FailedPrecondition`), or it ends.
pub(crate) async fn submit_job(
    conductor: &ActorRef<ConductorMsg>,
    request: v1::SubmitRequest,
) -> Result<v1::SubmitReply, Status> {
    let asked = Asked::from_request(request).map_err(Status::invalid_argument)?;
    answered(conductor.call(|reply| ConductorMsg::Submit { asked, reply }, None).await)
}

/// Has a run that is open closed to more jobs, and waits until that is durable.
///
/// # Errors
///
/// The run was never open or has not begun (`FailedPrecondition`), or it ends.
pub(crate) async fn close_run(
    conductor: &ActorRef<ConductorMsg>,
) -> Result<v1::CloseReply, Status> {
    answered(conductor.call(ConductorMsg::Shut, None).await)
}

#[tonic::async_trait]
impl v1::observe_server::Observe for ObserveApi {
    type EventsStream = Current<Given<v1::EventLine>>;

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusReply>, Status> {
        self.guard.demand(&request, Role::Observer, "status")?;
        let asked = self.conductor.call(ConductorMsg::Status, Some(ANSWER)).await;
        let (progress, age) = match asked.map_err(|_| ended())? {
            CallResult::Success(progress) => (progress, Duration::ZERO),
            CallResult::Timeout => {
                let Posted { progress, at } = *self.board.borrow();
                (progress, at.elapsed())
            }
            CallResult::SenderError => return Err(ended()),
        };
        let Progress { now, tasks, completed, running, vms, workers, cost, over, .. } = progress;
        let Awaited { back: workers_back, of: workers_awaited } =
            progress.awaited.unwrap_or_default();
        Ok(Response::new(v1::StatusReply {
            experiment: self.experiment.clone(),
            emulated_now_us: now.as_micros(),
            tasks,
            completed,
            running,
            vms,
            workers,
            cost_nanos: u64::try_from(cost.as_nanos()).unwrap_or(0),
            over,
            real_age_us: outage::micros(age),
            workers_awaited,
            workers_back,
            workers_lost: progress.counts.hosts_lost,
        }))
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        let bearer = self.guard.demand(&request, Role::Observer, "events")?;
        let events = self.events.read(request.into_inner())?;
        Ok(Response::new(Current::new(events, move || bearer.check())))
    }

    // Only who shows an operator's token may cancel a run.
    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        self.guard.demand(&request, Role::Operator, "cancel")?;
        let why = reason(request.into_inner().why, "the user ended it");
        let why = why.map_err(Status::invalid_argument)?;
        self.conductor.cast(ConductorMsg::Cancel { why }).map_err(|_| ended())?;
        Ok(Response::new(v1::CancelReply {}))
    }

    async fn interrupt(
        &self,
        request: Request<v1::InterruptRequest>,
    ) -> Result<Response<v1::InterruptReply>, Status> {
        self.guard.demand(&request, Role::Operator, "interrupt")?;
        let wanted =
            Injection::from_request(request.into_inner()).map_err(Status::invalid_argument)?;
        let asked = |reply| ConductorMsg::Interrupt { wanted, reply };
        answered(self.conductor.call(asked, None).await).map(Response::new)
    }

    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitReply>, Status> {
        self.guard.demand(&request, Role::Operator, "submit")?;
        submit_job(&self.conductor, request.into_inner()).await.map(Response::new)
    }

    async fn close(
        &self,
        request: Request<v1::CloseRequest>,
    ) -> Result<Response<v1::CloseReply>, Status> {
        self.guard.demand(&request, Role::Operator, "close")?;
        close_run(&self.conductor).await.map(Response::new)
    }
}
