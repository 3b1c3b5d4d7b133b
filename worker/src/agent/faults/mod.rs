//! Faults that an experiment requests and the worker itself carries out. Faults of the network affect only the worker's
//! own end of each connection, and nothing else on the host.

mod carry_out;
mod dialler;
mod host;
mod line;
mod network;
mod pause;
mod stream;

pub use carry_out::{FaultyHost, carry_out};
pub use dialler::{DialledLink, Dialling, HostDialler};
pub(crate) use host::WorkerHost;
pub use network::WorkerNetwork;
