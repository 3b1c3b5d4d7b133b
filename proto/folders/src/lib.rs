//! Folders that a process holds by a lock while it uses them, and that are removed after its death.
//!
//! A [`HeldFolder`] is locked by who made it. Folders in it may be held as well, each by a process of
//! its own, through the file [`LOCK`] in them. [`remove_abandoned`] takes away what a process that was
//! killed left, and nothing that anybody still holds. [`remove_tree`] removes a folder with all that strangers have put there.

mod abandoned;
mod error;
mod held;
mod lock;
mod tree;

pub use abandoned::remove_abandoned;
pub use error::FolderError;
pub use held::HeldFolder;
pub use lock::{LOCK, try_lock_in};
pub use lock::{Lock, Tried};
pub use tree::{empty_tree, remove_tree};
