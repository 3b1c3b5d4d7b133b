//! The messages between the conductor of a run and the sessions of its workers, and what others ask of both.

use dormouse_proto::v1;
use dormouse_units::HostId;
use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::DropGuard;

use crate::messages::interruption::InjectedInterruption;
use crate::messages::outside::JobSubmission;
use crate::protocol::link::QueuedCommand;
use crate::protocol::wire::DecodedReport;
use crate::status::progress::RunProgress;

/// Messages to the conductor.
#[derive(Debug)]
pub(crate) enum ConductorMsg {
    /// A worker is connected. Answered with its session, or why it can't have one.
    Hello {
        hello: v1::Hello,
        ack: u64,
        connection: WorkerConnection,
        reply: RpcReplyPort<Result<ActorRef<SessionMsg>, NoSession>>,
    },
    /// New reports of a host, the last of them numbered `through`.
    Heard { host: HostId, through: u64, heard: Vec<(u64, DecodedReport)> },
    /// The worker of a host is connected, maybe again.
    Attached { host: HostId },
    /// A host's session has given it up.
    Lost { host: HostId, why: String },
    /// A worker that was there before the run was gone on with has taken more commands than the log has of it.
    LogWentBack { host: HostId, ack: u64, said: u64 },
    /// The alarm rings.
    Tick,
    /// The run was stuck a while ago; is it still, without a break?
    StillStuck { since: u64 },
    /// A user has a job more.
    Submit { asked: JobSubmission, reply: RpcReplyPort<Result<v1::SubmitReply, String>> },
    /// No more of them come.
    Shut(RpcReplyPort<Result<v1::CloseReply, String>>),
    /// Somebody who looks on has the provider act. Answered once that is in the log.
    Interrupt {
        wanted: InjectedInterruption,
        reply: RpcReplyPort<Result<v1::InterruptReply, String>>,
    },
    /// The user ends the run.
    Cancel { why: String },
    /// The run stops here, to be gone on with later.
    Pause { why: String },
    /// The workers had their time to clean up.
    Close,
    /// The workers had their time for spot checks.
    ChecksLate,
    /// Time to show the progress.
    Show,
    /// Time to say in the log what the clock shows.
    SayClock,
    /// How is the run?
    Status(RpcReplyPort<RunProgress>),
}

/// Messages to the session of one worker.
#[derive(Debug)]
pub(crate) enum SessionMsg {
    /// The worker is connected, and has taken commands up to `ack`.
    Attach { connection: WorkerConnection, ack: u64 },
    /// Something came over this connection. The permit lets it send more.
    Received { connection: u64, message: v1::FromWorker, permit: OwnedSemaphorePermit },
    /// A connection has broken.
    Detached { connection: u64, why: String },
    /// The connection can take more messages.
    Writable { connection: u64 },
    /// Commands whose steps are durable, and up to which report all is durable.
    Release { commands: Vec<QueuedCommand>, durable: u64 },
    /// Time for a heartbeat.
    Beat,
    /// Answered when all that was released before is on its way.
    Settle(RpcReplyPort<()>),
    /// Is the worker connected, as far as is known?
    IsConnected(RpcReplyPort<bool>),
    /// The worker is lost to this run: tell it, if it can hear.
    Dismiss { why: String },
}

/// One connection of a worker. Dropping it ends the reading of it, too.
#[derive(Debug)]
pub(crate) struct WorkerConnection {
    pub(crate) id: u64,
    /// The version of the protocol that is spoken over it.
    pub(crate) protocol: u32,
    pub(crate) to_worker: mpsc::Sender<v1::ToWorker>,
    pub(crate) reading: DropGuard,
}

/// Why a worker gets no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// As a session would end.
    Goodbye(v1::Goodbye),
    /// It is not welcome as what it says it is, however often it comes.
    Refused(String),
    /// It may be later.
    NotYet(String),
}

impl From<v1::Goodbye> for NoSession {
    fn from(goodbye: v1::Goodbye) -> Self {
        Self::Goodbye(goodbye)
    }
}
