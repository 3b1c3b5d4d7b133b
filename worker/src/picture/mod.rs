//! What programs can see of themselves: the kernel's own words on every process of a task, taken when its checkpoint begins, and
//! again when it is restored and has not run yet. What differs is set again where that can be done from outside, and else named.
//!
//! Left out is what is another by design: numbers of inodes and mounts, the names of the host and its processors, and how
//! much time has passed. Nobody but a program itself can read its interval timers (getitimer(2)), and its memory is compared by
//! the digests of its pages.

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
