//! Interface of an object store such as S3, as far as a coordinator needs it.
//!
//! The coordinator implements no protocol of such stores itself: whoever starts it passes a store in its
//! [`World`](crate::World).

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;

/// Future of a call's result, which ends when the store has answered or the call was given up.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// An object store. Every call has a time limit, and the store repeats it if that can help.
pub trait ObjectStorage: fmt::Debug + Send + Sync {
    /// Lists the keys below a folder, with their objects' lengths in bytes.
    fn list_objects(&self, folder: String) -> Pending<'_, Vec<(String, u64)>>;

    /// Begins to store an object, which replaces one of the same key.
    fn begin_upload(&self, key: String) -> Box<dyn ObjectUpload>;

    /// Opens an object.
    fn begin_download(&self, key: String) -> Pending<'_, Box<dyn ObjectDownload>>;

    /// Removes an object; it is not an error if the object doesn't exist.
    fn remove(&self, key: String) -> Pending<'_, ()>;
}

/// An object that is being stored. It exists once [`ObjectUpload::finish_upload`] has succeeded; dropped before, it
/// leaves nothing.
pub trait ObjectUpload: fmt::Debug + Send {
    /// Sends the object's next bytes; the upload may hold them back for a while.
    fn write(&mut self, data: Bytes) -> Pending<'_, ()>;

    /// Sends the rest of the object; then the object is complete and durable.
    fn finish_upload(&mut self) -> Pending<'_, ()>;
}

/// An object that is being read.
pub trait ObjectDownload: Send {
    /// Returns the next bytes of the object; `None` after the last.
    fn next(&mut self) -> Pending<'_, Option<Bytes>>;
}

/// Errors of an object store, each with the place and the remedy in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The store has no object with this key.
    #[error("{0}")]
    Absent(String),
    /// The store can't be reached, or doesn't answer in time.
    #[error("{0}")]
    Unreachable(String),
    /// The store refuses the request.
    #[error("{0}")]
    Refused(String),
}
