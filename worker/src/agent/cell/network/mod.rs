//! The private network of instances: packets of a cell's device, which security groups let through to other cells.
//!
//! Each cell has a device of layer 3 (`eth0`, tun(4)) in its own network, whose other end the worker has. The worker delivers the
//! packets between the cells of a network, by the coordinator to those of other workers, and nothing else: there is no way from
//! there to the host.

mod flows;
mod packet;
mod port;
mod rules;
mod switch;
mod thread;
mod uplink;

pub(crate) use port::CellPort;
pub(crate) use rules::CellNetwork;
pub(crate) use switch::NetworkSwitch;
pub(crate) use uplink::NetworkUplink;
