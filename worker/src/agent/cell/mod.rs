//! The cell of an instance: a VM's processes that no task owns, from the first one, which runs the user data, to the
//! last; and the CPU time that they may use.

mod console;
mod files;
mod launch;
mod network;
mod pace;
mod relay;
mod ssh;

pub(crate) use console::{ConsoleReader, read_console};
pub(crate) use files::{FilesAbsence, InstanceFolders};
pub use launch::CellLaunch;
pub(crate) use launch::{begin_cell, check_cell, claim_folder, folder_name};
pub(crate) use network::{CellNetwork, NetworkSwitch, NetworkUplink};
pub(crate) use pace::{CellPace, CellQuota};
pub(crate) use relay::api_url;
pub use relay::{CellRelays, RelayOrder};
pub use ssh::find_ssh_server;
