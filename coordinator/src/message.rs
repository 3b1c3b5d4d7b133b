//! What the conductor is told and asked.

use dormouse_proto::v1;
use dormouse_units::HostId;
use ractor::{ActorRef, RpcReplyPort};

use crate::interruption::Injection;
use crate::outside::Asked;
use crate::progress::Progress;
use crate::session::{Connection, NoSession, SessionMsg};
use crate::wire::Heard;

#[derive(Debug)]
pub(crate) enum ConductorMsg {
    /// A worker is connected. Answered with its session, or why it can't have one.
    Hello {
        hello: v1::Hello,
        ack: u64,
        connection: Connection,
        reply: RpcReplyPort<Result<ActorRef<SessionMsg>, NoSession>>,
    },
    /// New reports of a host, the last of them numbered `through`.
    Heard { host: HostId, through: u64, heard: Vec<(u64, Heard)> },
    /// The worker of a host is connected, maybe again.
    Attached { host: HostId },
    /// A host's session has given it up.
    Lost { host: HostId, why: String },
    /// The alarm rings.
    Tick,
    /// The run was stuck a while ago; is it still, without a break?
    StillStuck { since: u64 },
    /// A user has a job more.
    Submit { asked: Asked, reply: RpcReplyPort<Result<v1::SubmitReply, String>> },
    /// No more of them come.
    Shut(RpcReplyPort<Result<v1::CloseReply, String>>),
    /// Somebody who looks on has the provider act. Answered once that is in the log.
    Interrupt { wanted: Injection, reply: RpcReplyPort<Result<v1::InterruptReply, String>> },
    /// The user ends the run.
    Cancel { why: String },
    /// The run stops here, to be gone on with later.
    Pause { why: String },
    /// The workers had their time to clean up.
    Close,
    /// Time to show the progress.
    Show,
    /// Time to say in the log what the clock shows.
    SayClock,
    /// How is the run?
    Status(RpcReplyPort<Progress>),
}
