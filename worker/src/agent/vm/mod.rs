//! One VM: its owner, who alone touches its groups and processes.

mod attempt;
mod checkpoints;
mod credits;
mod ends;
mod lane;
mod meter;
mod owner;
mod starts;
mod stops;

pub(crate) use owner::{Ask, Message, own};
