//! A task's directory: made from its inputs, saved with its checkpoints, put back from them.
//!
//! Whatever is in it a task has put there, and a task may be hostile: nothing here follows a link, every name is
//! looked up in an open directory, and depth, number and size are bounded.
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
pub use error::{Error, Result};
pub use input::Input;
pub(crate) use leavings::{Leavings, has_file, matching, open_leaving};
pub(crate) use make::make_copy;
pub use make::{WORK, make};
pub use node::{Kind, Node};
pub(crate) use node::{Wrong, check, is_plain};
pub use objects::Objects;
pub(crate) use restore::restore;
pub use size::{is_full, size};
pub(crate) use snapshot::snapshot;
pub(crate) use walk::{Found, walk, walk_past};
