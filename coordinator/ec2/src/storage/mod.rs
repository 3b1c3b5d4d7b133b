//! Volumes and snapshots: records that store nothing and cost nothing.

mod devices;
mod modifications;
mod snapshot_access;
mod snapshots;
mod volume_calls;
mod volumes;
