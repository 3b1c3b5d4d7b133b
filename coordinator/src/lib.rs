//! The coordinator service: one live run of an experiment on real workers.
//!
//! [`LiveRun`] binds an address, waits for its workers, refuses what they cannot
//! hold ([`admission`]), and conducts the run to its end. Inside, ractor actors:
//!
//! - the *conductor* owns the [`dormouse_engine::Run`] and gives every event its place, on a thread
//!   of its own: the scheduler under test may think for as long as it likes;
//! - the *journal* makes every step durable before its commands leave;
//! - the *clock* says when the run wants to be woken;
//! - one *session* per worker keeps what was said until it was heard;
//! - the *warden* supervises them all: a panic anywhere ends the run with an error.
//!
//! [`replay`] feeds a run's log through the policies again and compares.

/// The target of what a user is told while nothing is wrong.
pub const NEWS: &str = "news";

/// The target of what is refused to workers in the course of things, as a checkpoint that comes when its task has ended:
/// for the file of what a coordinator said, not for whoever types a command.
pub const DETAILS: &str = "details";

/// The target of spans for whoever traces a run: of the run, its sessions, decisions, writes and
/// transfers. Where nobody does, one costs a comparison.
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
pub use contents::Contents;
pub use dormouse_identity::CERTIFICATE_VALID;
pub use error::{CoordinatorError, REFUSED};
pub use identity::{
    Candidate, Candidates, ConnectionBounds, Socket, make_identity, make_token_for_one,
    refuse_token, refused_tokens, renew_token,
};
pub use lifecycle::in_process::InProcess;
pub use lifecycle::live::{BoundRun, Conducted, LiveRun, Observer};
pub use lifecycle::stops::STOPPED_BY_USER;
pub use log::replay::{Difference, ReplayError, ReplayReport, replay};
pub use observers::remote::{EventLines, Remote, RemoteError, address_of};
pub use protocol::given::Given;
pub use server::desk::Desk;
pub use sessions::outbound::Outbound;
pub use status::progress::{Awaited, Progress};
pub use status::vitals::{SessionVitals, Vitals};
pub use storage::transfers::Download;
pub use system::descriptors::{descriptor_limit, raise_descriptor_limit};
pub use system::listener::{Accepting, Link, Listener};
pub use system::objects::{Download as ObjectDownload, ObjectError, Objects, Pending, Upload};
pub use system::session_limits::SessionLimits;
pub use system::signals::Signals;
pub use system::world::{Chance, Disk, StoreFile, Threads, WallClock, World};
pub use time::delays::DelayHistogram;
