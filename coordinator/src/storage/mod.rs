//! Checkpoints: kept in the run's folder and, where there is one, in its store of objects, sealed by the run's key, on
//! their way to workers and from them, and given only to whom they were assigned.

pub(crate) mod assignments;
pub(crate) mod fetches;
pub(crate) mod image_key;
pub(crate) mod offsite;
pub(crate) mod receipts;
pub(crate) mod retention;
pub(crate) mod sealed;
pub(crate) mod store;
pub(crate) mod transfers;
