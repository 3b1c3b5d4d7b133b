//! The event log of a run, `events.jsonl`.
//!
//! The first line is a header, a JSON object with the version of the format and all that is needed to repeat the run;
//! every further line is one step of the run, in order. The caller defines what a step is: this crate handles lines
//! only.
//!
//! A crash may leave a torn last line, and a power cut may leave blocks of anything after the durable bytes. Every
//! reader leaves out and reports such a tail. Damage before the tail is an error. A log of another [`FORMAT`] is
//! refused.
//!
//! A chain of hashes goes over the lines ([`Chain`]), whose head is in the folder's [`Seal`].

mod chain;
mod error;
mod file;
mod header;
mod input;
mod reader;
mod seal;
mod writer;

pub use chain::{Chain, Head};
pub use error::LogError;
pub use file::{FileHash, HashedFile};
pub use file::{LogFile, OpenLog, open_file};
pub use header::HeaderText;
pub use input::Input;
pub use reader::{LogReader, has_header};
pub use seal::{ForcedSeal, Resealed, SEAL, Seal, check_seal, reseal};
pub use writer::{LogWriter, is_under_way};

/// File name of the log in a run's folder.
pub const FILE: &str = "events.jsonl";

/// Version of the log format, stored in the header's `format`. Lines of the same version may gain
/// keys, which older programs ignore.
pub const FORMAT: u32 = 2;
