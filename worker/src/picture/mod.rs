//! Pictures of tasks: the kernel's reports on every process of a task, as programs can see them, taken when the task's
//! checkpoint begins, and again when the task is restored and has not run yet. Differences are set right where that can
//! be done from outside, and reported otherwise.
//!
//! Facts that differ by design are left out: numbers of inodes and mounts, the names of the host and its processors,
//! and how much time has passed. Nobody but a program itself can read its interval timers (getitimer(2)), and its
//! memory is compared by the digests of its pages.

mod changes;
mod descriptor;
mod mend;
mod process;
mod socket;
mod task;

pub use changes::PictureChange;
pub use mend::mend_differences;
pub use process::ProcessPicture;
pub use task::{TaskPicture, stopped_processes};
