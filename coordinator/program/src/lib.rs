//! A scheduler that is a program of its own, in any language.
//!
//! The program is started with a pipe to its standard input and one from its standard output. Lines of JSON go through
//! the pipes strictly in turn. The first line is a [`Hello`] with the provider's offer, the work and the experiment's
//! own parameters; then, for each decision, one line with the time and the notices is answered by one line of
//! decisions. Notices and decisions are those of `events.jsonl`. `docs/scheduler-protocol.md` describes the protocol
//! for authors of schedulers.
//!
//! A program that does anything else has failed: its policy reports the reason, and its run ends there.

mod error;
mod last_words;
mod lines;
mod linked;
mod pipes;
mod process;
mod scheduler;
mod schema;

pub use error::ProgramError;
pub use last_words::StandardError;
pub use lines::{Hello, Machine, PROTOCOL, ProtocolVersions};
pub use lines::{HelloAnswer, HelloLine, ProgramAnswer, ProgramQuestion, read_line};
pub use linked::{Make, is_linked, link, linked};
pub use scheduler::start;
pub use schema::schema;
