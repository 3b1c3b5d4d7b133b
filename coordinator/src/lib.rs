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
//! [`replay`] feeds a run's log through the policies again and compares; [`latency`] measures how long the
//! provider's scheduler takes here.

/// The target of what a user is told while nothing is wrong.
pub const NEWS: &str = "news";

/// The target of spans for whoever traces a run: of the run, its sessions, decisions, writes and
/// transfers. Where nobody does, one costs a comparison.
pub const SPANS: &str = "spans";

pub mod admission;
mod announce;
mod answers;
mod api;
mod assignments;
mod beginning;
mod bounds;
mod candidates;
mod clock;
mod conductor;
mod content_calls;
mod contents;
mod delays;
mod desk;
mod disk;
mod error;
mod feed;
mod fetches;
mod given;
mod greeting;
mod identity;
mod image_key;
mod in_process;
mod interruption;
mod journal;
pub mod latency;
mod link;
mod listener;
mod live;
mod lives;
mod measured;
mod message;
mod objects;
mod observe;
mod offsite;
mod outage;
mod outbound;
mod outside;
mod own_program;
mod parallel;
mod plan;
mod progress;
mod punctuality;
mod refusals;
mod remote;
mod replay;
mod restore;
mod retention;
mod roster;
mod service;
mod session;
mod signals;
mod stops;
mod store;
mod texts;
mod transfers;
mod unasked;
pub mod untrusted;
mod vitals;
mod warden;
mod wire;
mod world;

pub use answers::ANSWER_WITHIN;
pub use contents::Contents;
pub use delays::DelayHistogram;
pub use desk::Desk;
pub use error::CoordinatorError;
pub use given::Given;
pub use identity::{make_identity, renew_token};
pub use in_process::InProcess;
pub use listener::{Accepting, Link, Listener};
pub use live::{BoundRun, Conducted, LiveRun, Observer};
pub use objects::{Download as ObjectDownload, ObjectError, Objects, Pending, Upload};
pub use outbound::Outbound;
pub use progress::{Awaited, Progress};
pub use remote::{EventLines, Remote, RemoteError, address_of};
pub use replay::{Difference, ReplayError, ReplayReport, replay};
pub use signals::Signals;
pub use transfers::Download;
pub use vitals::{SessionVitals, Vitals};
pub use world::{Chance, Disk, Threads, WallClock, World};
