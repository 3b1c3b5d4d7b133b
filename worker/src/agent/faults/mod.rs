//! Faults that an experiment requests and the worker itself carries out. Faults of the network affect only the worker's
//! own end of each connection, and nothing else on the host.

mod carry_out;
mod dialler;
mod line;
mod network;
mod pause;
mod stream;

pub(crate) use carry_out::carry_out;
pub use dialler::{DialledLink, Dialling, HostDialler};
pub use network::WorkerNetwork;
