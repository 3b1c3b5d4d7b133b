//! A machine for parallel jobs: processors with a foreground and a background slot each, and one
//! owner, who alone touches its groups and processes.
//!
//! A job is one tree of processes in its own PID namespace. Its parent only waits, in a lane of
//! its own beside the processors; each of its ranks runs in a slot of its processor. Who holds
//! which slot is decided by [`seats::Seats`]; which job may go where, by the coordinator.
//!
//! How far every job should be is what [`dormouse_tasks::ideal`] makes of the same commands; how
//! far it is, its [`ledger`]'s business; and [`pace`] makes the one follow the other.

mod birth;
mod departures;
mod job;
mod ledger;
mod machine;
mod meter;
mod pace;
mod ranks;
mod seats;
mod stop;

pub(crate) use machine::{Ask, Message, own};
