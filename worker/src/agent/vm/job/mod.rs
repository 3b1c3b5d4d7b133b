//! A parallel job: one tree of processes in its own PID namespace.
//!
//! Its parent only waits, in a lane of its own beside the vCPUs; each of its ranks runs in a slot
//! of its vCPU. How far it should be is what [`dormouse_vm::ideal`] makes of its plan; how far it
//! is, its [`ledger`]'s business; and [`pace`] makes the one follow the other.

mod birth;
mod checkpoints;
mod ledger;
mod life;
mod meter;
mod moves;
mod pace;
mod paying;
mod ranks;
mod signals;

pub(crate) use birth::{Birth, Order, launch};
pub(crate) use life::{Job, create_groups};
pub(crate) use moves::Leaving;
pub use pace::{Due, Pace};
pub(crate) use paying::charged_ns;
