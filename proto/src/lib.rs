//! The wire between coordinator and workers: generated code. This crate makes no decisions.

mod carrying;
mod deadline;
mod numbering;
mod packing;
mod protocol;

pub use carrying::{
    BadBatch, CARRIED_PACKETS, CarryBudget, LARGEST_PACKET, NETWORK_NAME_BYTES, SECURITY_GROUPS,
    check_batch,
};
pub use deadline::Deadline;
pub use numbering::{FalseAck, Gap, Inbox, Outbox};
pub use packing::{BadChunk, Carrier, PACKED_CHUNKS, Packing, TAKES_PACKED, unpack};
pub use protocol::{
    CELLS, CGROUP_V1, CGROUP_V2, CRIU, FAULTS, JOB_CHECKPOINTS, JOB_CREDITS, JOB_MEMORY, METADATA,
    NO_JAIL, NoProtocol, PARTIAL_JAIL, PROTOCOLS, Protocols, SUPPLY, TIERS, TRAILS,
};

/// Version 1 of the protocol between coordinator and workers: code generated from the .proto files.
#[allow(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::large_enum_variant,
    clippy::missing_errors_doc,
    clippy::semicolon_if_nothing_returned,
    clippy::use_self,
    unreachable_pub,
    reason = "generated code"
)]
pub mod v1;
