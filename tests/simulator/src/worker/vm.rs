//! One VM in memory. It carries out what [`dormouse_vm::life`] decides, as the agent's owner of a VM does
//! with groups and processes, and reports the same at the same moments.

mod agenda;
mod attempt;
mod checkpoints;
mod effects;
mod ends;
mod hibernation;
mod job;
mod jobs;
mod launches;
mod owner;
mod reference;
mod starts;
mod stops;

pub(super) use owner::{Message, own_vm};
