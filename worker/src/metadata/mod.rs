//! Metadata that programs on a VM read at 169.254.169.254 in the VM's network: facts about the VM, and notices of its
//! end.
//!
//! An [`Endpoint`] belongs to one VM, and exists as long as the VM. It is outside of the VM, so whatever happens to the
//! programs there, it answers the next request. Every connection has one request, so that hardly any connection is open
//! when a program is dumped.

mod endpoint;
mod facts;
mod http;
mod listen;
mod notice_file;
mod untrusted;

pub(crate) use endpoint::METADATA_VARIABLE;
pub use endpoint::{Endpoint, random_key};
pub use facts::unix_now;
pub(crate) use facts::{Clock, Moment, own_address, read_announcement, vm_facts};
pub(crate) use listen::ADDRESS as METADATA_ADDRESS;
pub use listen::listen_in_vm;
pub(crate) use notice_file::leave_notice;
pub use untrusted::metadata_connection;
