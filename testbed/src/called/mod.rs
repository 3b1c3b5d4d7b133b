//! Runs of a cloud whose VMs are requested by callers of its API.

mod kept_lines;
mod recorded_cloud;

pub(crate) use recorded_cloud::RecordedCloud;
