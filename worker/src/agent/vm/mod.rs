//! One VM: its owner, who alone touches its groups and processes.

mod accounts;
mod attempt;
mod checkpoints;
mod ends;
mod lane;
mod owner;
mod pacing;
mod reference;
mod starts;
mod stops;

pub(crate) use owner::{Ask, Message, own};
