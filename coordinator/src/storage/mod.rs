//! Checkpoints: kept in the run's folder and, if the run has one, in its object store; sealed with the run's key; sent
//! to and from workers, and only to hosts to which they are assigned.

pub(crate) mod assignments;
pub(crate) mod fetches;
pub(crate) mod image_key;
pub(crate) mod offsite;
pub(crate) mod receipts;
pub(crate) mod retention;
pub(crate) mod sealed;
pub(crate) mod store;
pub(crate) mod transfers;
