//! Faults that an experiment asks for, carried out by the worker itself: those of the network in its
//! own end of each connection, so that nothing else on the host has them.

mod carry_out;
mod dialler;
mod line;
mod network;
mod pause;
mod stream;

pub(crate) use carry_out::carry_out;
pub use dialler::{DialledLink, Dialling, HostDialler};
pub use network::WorkerNetwork;
