//! A task's directory: made from its inputs, saved with its checkpoints, restored from them.
//!
//! A task has put there whatever is in its directory, and a task may be hostile: nothing here follows a link, every
//! name is looked up in an open directory, and depth, number and size are bounded.
//!
//! ```text
//! tasks/<run>/<task>/     the task's folder, its user's alone
//!     work/               the working directory of a program of the user's own
//!     stdout, stderr      what the program says
//! ```

mod attributes;
mod error;
mod handle;
mod input;
mod leavings;
mod make;
mod node;
mod objects;
mod restore;
mod size;
mod snapshot;
mod walk;

pub(crate) use attributes::read_attributes;
pub use error::{DirectoryError, Result};
pub use input::TaskInput;
pub(crate) use leavings::{LeftFiles, has_file, matching_paths, open_leaving};
pub(crate) use make::make_copy;
pub use make::{WORK, make_directory};
pub use node::{DirectoryNode, NodeKind};
pub(crate) use node::{InvalidNode, check_nodes, is_plain};
pub use objects::ContentObjects;
pub(crate) use restore::restore_directory;
pub use size::{directory_size, is_full};
pub(crate) use snapshot::snapshot_directory;
pub(crate) use walk::{FoundNode, walk, walk_past};
