//! The gRPC service for observers of a run: its progress, its events and its end.

use std::time::Duration;

use dormouse_identity::Role;
use dormouse_proto::v1;
use ractor::rpc::CallResult;
use ractor::{ActorRef, MessagingErr};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::identity::{CheckedStream, TokenGuard};
use crate::messages::interruption::{InjectedInterruption, read_reason};
use crate::messages::message::ConductorMsg;
use crate::messages::outside::JobSubmission;
use crate::observers::feed::EventFeed;
use crate::protocol::given::OutgoingStream;
use crate::status::progress::{AwaitedWorkers, PostedProgress, RunProgress};
use crate::time::outage;

/// Time for which a status request waits for a busy conductor, before it gets the progress that was last shown.
const ANSWER: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct ObserveApi {
    pub(crate) experiment: String,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) board: watch::Receiver<PostedProgress>,
    pub(crate) events: EventFeed,
    pub(crate) guard: TokenGuard,
}

fn run_ended() -> Status {
    Status::unavailable("the coordinator is shutting down")
}

/// Waits for the conductor's answer, which comes once its step is durable, however long that takes.
fn await_answer<T>(
    asked: Result<CallResult<Result<T, String>>, MessagingErr<ConductorMsg>>,
) -> Result<T, Status> {
    match asked {
        Ok(CallResult::Success(answer)) => answer.map_err(Status::failed_precondition),
        _ => Err(run_ended()),
    }
}

/// Submits a parallel job to an open run, and waits until the submission is durable.
///
/// # Errors
///
/// The job is invalid (`InvalidArgument`), the run doesn't accept it (`FailedPrecondition`), or the run ends.
pub(crate) async fn submit_job(
    conductor: &ActorRef<ConductorMsg>,
    request: v1::SubmitRequest,
) -> Result<v1::SubmitReply, Status> {
    let asked = JobSubmission::from_request(request).map_err(Status::invalid_argument)?;
    await_answer(conductor.call(|reply| ConductorMsg::Submit { asked, reply }, None).await)
}

/// Closes an open run to more jobs, and waits until that is durable.
///
/// # Errors
///
/// The run was never open or has not begun (`FailedPrecondition`), or the run ends.
pub(crate) async fn close_run(
    conductor: &ActorRef<ConductorMsg>,
) -> Result<v1::CloseReply, Status> {
    await_answer(conductor.call(ConductorMsg::Shut, None).await)
}

#[tonic::async_trait]
impl v1::observe_server::Observe for ObserveApi {
    type EventsStream = CheckedStream<OutgoingStream<v1::EventLine>>;

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusReply>, Status> {
        self.guard.demand_role(&request, Role::Observer, "status")?;
        let asked = self.conductor.call(ConductorMsg::Status, Some(ANSWER)).await;
        let (progress, age) = match asked.map_err(|_| run_ended())? {
            CallResult::Success(progress) => (progress, Duration::ZERO),
            CallResult::Timeout => {
                let PostedProgress { progress, at } = *self.board.borrow();
                (progress, at.elapsed())
            }
            CallResult::SenderError => return Err(run_ended()),
        };
        let RunProgress { now, tasks, completed, running, vms, workers, cost, over, .. } = progress;
        let AwaitedWorkers { back: workers_back, of: workers_awaited } =
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
            real_age_us: outage::to_micros(age),
            workers_awaited,
            workers_back,
            workers_lost: progress.counts.hosts_lost,
        }))
    }

    async fn events(
        &self,
        request: Request<v1::EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        let bearer = self.guard.demand_role(&request, Role::Observer, "events")?;
        let events = self.events.read(request.into_inner())?;
        Ok(Response::new(CheckedStream::new(events, move || bearer.check_token())))
    }

    // Who may cancel a run over the network: only who shows an operator's token. A second signal to the run's own process, and
    // the conductor at a time limit, cancel it as well.
    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        self.guard.demand_role(&request, Role::Operator, "cancel")?;
        let why = read_reason(request.into_inner().why, "the user ended it");
        let why = why.map_err(Status::invalid_argument)?;
        self.conductor.cast(ConductorMsg::Cancel { why }).map_err(|_| run_ended())?;
        Ok(Response::new(v1::CancelReply {}))
    }

    async fn interrupt(
        &self,
        request: Request<v1::InterruptRequest>,
    ) -> Result<Response<v1::InterruptReply>, Status> {
        self.guard.demand_role(&request, Role::Operator, "interrupt")?;
        let wanted = InjectedInterruption::from_request(request.into_inner())
            .map_err(Status::invalid_argument)?;
        let asked = |reply| ConductorMsg::Interrupt { wanted, reply };
        await_answer(self.conductor.call(asked, None).await).map(Response::new)
    }

    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitReply>, Status> {
        self.guard.demand_role(&request, Role::Operator, "submit")?;
        submit_job(&self.conductor, request.into_inner()).await.map(Response::new)
    }

    async fn close(
        &self,
        request: Request<v1::CloseRequest>,
    ) -> Result<Response<v1::CloseReply>, Status> {
        self.guard.demand_role(&request, Role::Operator, "close")?;
        close_run(&self.conductor).await.map(Response::new)
    }
}
