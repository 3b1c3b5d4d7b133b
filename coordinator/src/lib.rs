//! The coordinator service: one live run of an experiment on real workers.
//!
//! [`LiveRunPlan`] binds an address, waits for its workers, refuses runs that they can't hold ([`admission`]), and
//! conducts the run to its end. Inside, ractor actors:
//!
//! - the *conductor* owns the [`dormouse_engine::Run`] and gives every event its place, on a thread
//!   of its own: the scheduler under test may think for as long as it likes;
//! - the *journal* makes every step durable before its commands leave;
//! - the *clock* says when the run wants to be woken;
//! - one *session* per worker keeps each command until the worker has acknowledged it;
//! - the *warden* supervises them all: a panic anywhere ends the run with an error.
//!
//! [`replay_log`] feeds a run's log through the policies again and compares.

/// Tracing target of messages to the user about a run that goes well.
pub const NEWS: &str = "news";

/// Tracing target of refusals to workers in the normal course of a run, such as a checkpoint that arrives after its
/// task's end: for the coordinator's log file, not for a terminal.
pub const DETAILS: &str = "details";

/// Tracing target of spans: of the run, its sessions, decisions, writes and transfers. Without a subscriber, a span
/// costs one comparison.
pub const SPANS: &str = "spans";

pub mod admission;
mod conductor;
mod contents;
mod error;
mod identity;
mod lifecycle;
mod limits;
mod log;
mod messages;
mod networks;
mod observers;
mod plan;
mod protocol;
mod server;
mod sessions;
mod status;
mod storage;
mod system;
mod time;
pub mod untrusted;

pub use conductor::outstanding::ANSWER_WITHIN;
pub use contents::ContentPool;
pub use dormouse_identity::CERTIFICATE_VALID;
pub use error::{CoordinatorError, REFUSED};
pub use identity::{
    ConnectionBounds, GuardedSocket, UnauthenticatedConnection, UnauthenticatedConnections,
    make_identity, make_token_for_one, refuse_token, refused_tokens, renew_token,
};
pub use lifecycle::in_process::InProcess;
pub use lifecycle::live::{BoundRun, LiveOutcome, LiveRunPlan, RunObserver};
pub use lifecycle::stops::STOPPED_BY_USER;
pub use log::replay::{LogReplayError, ReplayDifference, ReplayReport, replay_log};
pub use messages::api_calls::{ApiAnswer, DeskLook, DeskRequest, RunApi};
pub use observers::remote::{EventLines, RemoteCoordinator, RemoteError, address_of};
pub use protocol::given::OutgoingStream;
pub use server::desk::WorkerDesk;
pub use sessions::outbound::WorkerOutbound;
pub use status::progress::{AwaitedWorkers, RunProgress};
pub use status::vitals::{CoordinatorVitals, SessionVitals};
pub use storage::transfers::Download;
pub use system::descriptors::{descriptor_limit, raise_descriptor_limit};
pub use system::listener::{Accepting, ByteLink, ConnectionListener};
pub use system::objects::{ObjectDownload, ObjectError, ObjectStorage, ObjectUpload, Pending};
pub use system::session_limits::SessionLimits;
pub use system::signals::ProcessSignals;
pub use system::world::{
    BlockingThreads, CoordinatorWorld, LogDisk, RandomSource, StoreFile, WallClock,
};
pub use time::delays::DelayHistogram;
