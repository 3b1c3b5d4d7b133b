//! What programs on a VM read of it, and of its end, at 169.254.169.254 in its network.
//!
//! An [`Endpoint`] is one VM's, and lives as long. It is outside of the VM: whatever becomes of the programs there, it
//! answers the next. Every connection has one request, so that hardly any is open when a program is dumped.

mod endpoint;
mod facts;
mod http;
mod listen;
mod notice_file;
mod untrusted;

pub use endpoint::{Endpoint, random_key};
pub use facts::unix_now;
pub(crate) use facts::{Clock, Moment, read_announcement, vm_facts};
pub use listen::listen_in_vm;
pub(crate) use notice_file::leave_notice;
pub use untrusted::metadata_connection;
