//! Private networks of instances, across workers.

mod exchange;

pub(crate) use exchange::PacketExchange;
