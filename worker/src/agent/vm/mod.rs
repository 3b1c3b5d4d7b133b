//! One VM: its owner, who alone touches its groups and processes.

mod accounts;
mod attempt;
mod checkpoints;
mod clock;
mod destroy;
mod ends;
mod hangs;
mod lane;
mod liveness;
mod owner;
mod pacing;
mod reference;
mod starts;
mod stops;

pub(crate) use clock::{Asked, Dilation};
pub(crate) use owner::{Ask, Message, own};
