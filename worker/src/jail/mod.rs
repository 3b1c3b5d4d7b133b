//! The jail in which tasks run and are restored.
//!
//! A task is a process of a user of its own, without capabilities and without a way to new ones, in
//! namespaces of PIDs, mounts, network and System V IPC. Its root holds programs and libraries,
//! read-only, five devices that hold nothing, and the directories of tasks, of which it may enter its own.
//! It may make the system calls of a list; limits bound the sizes and the numbers of its files, and
//! control groups its memory and its processes.
//!
//! CRIU runs in the same namespaces of mounts, network and IPC, so that it takes them for its own and
//! dumps none of them; what it dumps of a task is its user, its limits, its filter, its root directory.
//! A restored task therefore is in the same jail as a new one. The tasks' root is a directory
//! in the namespace and not the namespace's root: CRIU needs a `/proc` of the worker's PID namespace,
//! and a task that could see that would see other tasks.
//!
//! `docs/jail.md` says what a task can still do, and what was tried.

mod calls;
mod cell;
mod device;
mod error;
mod filter;
mod lent;
mod limits;
mod lo;
mod parts;
mod root;
mod step;
mod users;
mod view;

pub use cell::{JailCell, JailRequest, TaskJail, path_inside};
pub(crate) use device::open_network_device;
pub use error::{JailError, Result};
pub use limits::{FILE_BYTES, OPEN_FILES, PIDS, PIDS_PER_VCPU, ProgramBounds};
pub use lo::switch_on;
pub(crate) use lo::{take_address, take_address_v6};
pub use parts::{DemandError, JailDemand, JailPart};
pub use root::{CELL, JailLayout};
pub use users::{UserRange, UsersError};
pub(crate) use view::processes_view;
pub use view::{MountView, NAME, NewView, ONE_COPY, SHELL, ViewOccupant, empty_folders};
