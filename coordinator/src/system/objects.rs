//! A store of objects by their keys, such as S3 is one: what a coordinator needs of it.
//!
//! The coordinator speaks no protocol of such stores itself: whoever starts it hands one over in its
//! [`World`](crate::World).

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;

/// The outcome of a call, once the store has answered it, or was given up.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ObjectError>> + Send + 'a>>;

/// A store of objects by their keys. Every call is bounded in time and tried again by itself where that can help.
pub trait ObjectStorage: fmt::Debug + Send + Sync {
    /// The keys that begin with these parts of a path, each with its object's length in bytes.
    fn list_objects(&self, folder: String) -> Pending<'_, Vec<(String, u64)>>;

    /// Begins to store an object, in the place of one that may be there.
    fn begin_upload(&self, key: String) -> Box<dyn ObjectUpload>;

    /// Opens an object.
    fn begin_download(&self, key: String) -> Pending<'_, Box<dyn ObjectDownload>>;

    /// Removes an object; one that is not there is as good as removed.
    fn remove(&self, key: String) -> Pending<'_, ()>;
}

/// An object that is being stored. It exists once [`ObjectUpload::finish_upload`] has succeeded; dropped before, it leaves nothing.
pub trait ObjectUpload: fmt::Debug + Send {
    /// Sends its next bytes, or has them sent.
    fn write(&mut self, data: Bytes) -> Pending<'_, ()>;

    /// Sends what is left; the object is whole and durable then.
    fn finish_upload(&mut self) -> Pending<'_, ()>;
}

/// An object that is being read.
pub trait ObjectDownload: Send {
    /// The next bytes; `None` after the last.
    fn next(&mut self) -> Pending<'_, Option<Bytes>>;
}

/// Why a store of objects did not do what it was asked. Each says where and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// There is no such object.
    #[error("{0}")]
    Absent(String),
    /// The store can't be reached, or does not answer in time.
    #[error("{0}")]
    Unreachable(String),
    /// The store refuses.
    #[error("{0}")]
    Refused(String),
}
