//! One VM: its owner, who alone touches its groups and processes. It carries out what
//! [`dormouse_vm::life`] decides, which hears from it what came of that.
//!
//! A [`task`] of one process is held to what the model of its VM makes of it, the processes of a
//! parallel [`job`] to what [`dormouse_tasks::ideal`] makes of the plan of their phases. All else is
//! the same for both: how they are started, stopped and frozen, and how they end.

mod attempt;
mod clock;
mod destroy;
mod effects;
mod ends;
mod hangs;
mod hibernation;
mod job;
mod lane;
mod launches;
mod liveness;
mod owner;
mod starts;
mod stops;
mod task;

pub(crate) use clock::{Asked, Dilation};
pub(crate) use owner::{Ask, Message, own};
