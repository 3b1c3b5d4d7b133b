//! Runs of a cloud whose VMs are requested by callers of its API.

mod call_journal;
mod kept_lines;
mod live_cloud;
mod recorded_cloud;

pub(crate) use kept_lines::KeptLines;
pub(crate) use live_cloud::LiveCloud;
pub(crate) use recorded_cloud::RecordedCloud;
