//! `dormouse advise`: what to decide on VMs that are taken away, with the curve behind it.

mod bid;
mod checkpoints;
mod command;
mod job;
mod reuse;
mod told;

pub(crate) use command::{AdviseCommand, advise};
