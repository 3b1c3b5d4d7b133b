//! One VM: an [`actor`] and the owner in it, who alone touches its groups and processes. It carries out what
//! [`dormouse_vm::life`] decides, which hears from it what came of that.
//!
//! A [`task`] of one process is held to what the model of its VM makes of it, the processes of a
//! parallel [`job`] to what [`dormouse_vm::ideal`] makes of the plan of their phases. All else is
//! the same for both: how they are started, stopped and frozen, and how they end.

mod actor;
mod attempt;
mod checkpoints;
mod clock;
mod effect_queue;
mod effects;
mod ends;
mod hangs;
mod hibernation;
mod job;
mod lane;
mod last_saves;
mod launches;
mod liveness;
mod metadata;
mod notices;
mod owner;
mod resources;
mod starts;
mod stops;
mod task;

pub(crate) use actor::{Vm, VmArgs};
pub use clock::{CommandStamp, VmClock};
pub use job::{Due, Pace};
pub use owner::Ask;
pub(crate) use owner::Message;
pub(crate) use resources::VmResources;
