//! `dormouse advise`: decisions about VMs that the provider may preempt, with the curve behind each decision.

mod bid;
mod checkpoints;
mod command;
mod job;
mod reuse;
mod told;

pub(crate) use command::{AdviseCommand, advise};
