//! The object store in which a live run keeps its checkpoints, besides the run's folder.

use std::sync::Arc;

use dormouse_coordinator::{ObjectError, ObjectStorage};
use dormouse_model::CheckpointStore;

/// The bucket that an experiment names, with the credentials of this process' environment.
///
/// # Errors
///
/// The environment has no credentials, the settings can't be used, or buckets are not built in.
#[cfg(feature = "bucket")]
pub(super) fn open(store: &CheckpointStore) -> Result<Arc<dyn ObjectStorage>, ObjectError> {
    let bucket = dormouse_bucket::Bucket::open(store)?;
    Ok(Arc::new(bucket))
}

#[cfg(not(feature = "bucket"))]
pub(super) fn open(store: &CheckpointStore) -> Result<Arc<dyn ObjectStorage>, ObjectError> {
    Err(ObjectError::Refused(format!(
        "{}: this dormouse was built without buckets; build it with --features bucket, or leave \
         live.checkpoint-store out",
        store.url
    )))
}
