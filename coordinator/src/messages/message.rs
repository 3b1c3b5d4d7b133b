//! The messages between the conductor of a run and the sessions of its workers, and requests of others to both.

use dormouse_proto::v1;
use dormouse_units::HostId;
use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::DropGuard;

use crate::messages::api_calls::DeskRequest;
use crate::messages::interruption::InjectedInterruption;
use crate::messages::outside::JobSubmission;
use crate::protocol::link::QueuedCommand;
use crate::protocol::wire::DecodedReport;
use crate::status::progress::RunProgress;

/// Messages to the conductor.
#[derive(Debug)]
pub(crate) enum ConductorMsg {
    /// A worker has connected. Answered with its session, or why it gets none.
    Hello {
        hello: v1::Hello,
        ack: u64,
        connection: WorkerConnection,
        reply: RpcReplyPort<Result<ActorRef<SessionMsg>, NoSession>>,
    },
    /// New reports of a host, the last of them numbered `through`.
    Heard { host: HostId, through: u64, heard: Vec<(u64, DecodedReport)> },
    /// The worker of a host has connected or reconnected.
    Attached { host: HostId },
    /// A host's session has given up its worker.
    Lost { host: HostId, why: String },
    /// A worker of a resumed run has taken more commands than the log has for it.
    LogWentBack { host: HostId, ack: u64, said: u64 },
    /// The alarm has rung: a report or timer may be due.
    Tick,
    /// Check whether a run that was stuck a while ago still is, without a break.
    StillStuck { since: u64 },
    /// Submit a user's job.
    Submit { asked: JobSubmission, reply: RpcReplyPort<Result<v1::SubmitReply, String>> },
    /// Close the run to further jobs.
    Shut(RpcReplyPort<Result<v1::CloseReply, String>>),
    /// Serve a caller of the provider's API.
    Caller(DeskRequest),
    /// Inject an action of the provider for an observer. Answered once it is in the log.
    Interrupt {
        wanted: InjectedInterruption,
        reply: RpcReplyPort<Result<v1::InterruptReply, String>>,
    },
    /// Cancel the run for its user.
    Cancel { why: String },
    /// Pause the run.
    Pause { why: String },
    /// The workers' time to clean up is over.
    Close,
    /// The workers' time for spot checks is over.
    ChecksLate,
    /// Show the progress to observers.
    Show,
    /// Log the time that the clock shows.
    SayClock,
    /// Return the progress of the run.
    Status(RpcReplyPort<RunProgress>),
}

/// Messages to the session of one worker.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    /// The worker has connected, and has taken commands up to `ack`.
    Attach { connection: WorkerConnection, ack: u64 },
    /// A message came over connection number `connection`. Dropping the permit lets the worker send more.
    Received { connection: u64, message: v1::FromWorker, permit: OwnedSemaphorePermit },
    /// A connection has broken.
    Detached { connection: u64, why: String },
    /// The connection has room for more messages.
    Writable { connection: u64 },
    /// Send the commands, whose steps are durable; and all reports up to number `durable` are durable.
    Release { commands: Vec<QueuedCommand>, durable: u64 },
    /// Send a heartbeat.
    Beat,
    /// Answered once all that was released before is sent.
    Settle(RpcReplyPort<()>),
    /// Return whether the worker is connected, as far as is known.
    IsConnected(RpcReplyPort<bool>),
    /// The worker is lost to this run; the session informs the worker, if connected.
    Dismiss { why: String },
}

/// One connection of a worker. Dropping it stops reading from it too.
#[derive(Debug)]
pub(crate) struct WorkerConnection {
    pub(crate) id: u64,
    /// Version of the protocol on this connection.
    pub(crate) protocol: u32,
    pub(crate) to_worker: mpsc::Sender<v1::ToWorker>,
    pub(crate) reading: DropGuard,
}

/// Reasons why a worker gets no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// The worker gets a goodbye, the message with which a session ends.
    Goodbye(v1::Goodbye),
    /// The worker is refused for good, however often it connects.
    Refused(String),
    /// The worker is refused for now, and may try again.
    NotYet(String),
}

impl From<v1::Goodbye> for NoSession {
    fn from(goodbye: v1::Goodbye) -> Self {
        Self::Goodbye(goodbye)
    }
}
