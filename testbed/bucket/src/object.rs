//! Objects on their way to a bucket and from it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use dormouse_coordinator::{ObjectDownload, ObjectError, ObjectUpload, Pending};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Handle;

use crate::failure::explain;

/// Size of a part of an object in bytes: an object has at most 10,000 parts, which makes 80 GB.
const PART: usize = 8 << 20;
/// Greatest number of parts of an object that are sent at once.
const PARTS_AT_ONCE: usize = 3;

/// An object on its way to the bucket. A small one is one request, a larger one goes in parts.
pub(crate) struct Outgoing {
    place: Arc<str>,
    /// Writer of the object's parts; `None` once the object is complete or abandoned.
    writer: Option<BufWriter>,
}

impl Outgoing {
    pub(crate) fn begin(store: Arc<dyn ObjectStore>, path: Path, place: Arc<str>) -> Self {
        let writer =
            BufWriter::with_capacity(store, path, PART).with_max_concurrency(PARTS_AT_ONCE);
        Self { place, writer: Some(writer) }
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({})", self.place)
    }
}

impl ObjectUpload for Outgoing {
    fn write(&mut self, data: Bytes) -> Pending<'_, ()> {
        Box::pin(async move {
            let writer = self.writer.as_mut().ok_or_else(|| given_up(&self.place))?;
            writer.put(data).await.map_err(|error| explain(&self.place, &error))
        })
    }

    fn finish_upload(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            // A failed end has removed its parts by itself.
            let mut writer = self.writer.take().ok_or_else(|| given_up(&self.place))?;
            writer.shutdown().await.map_err(|error| match error.downcast::<object_store::Error>() {
                Ok(error) => explain(&self.place, &error),
                Err(error) => ObjectError::Unreachable(format!("{}: {error}", self.place)),
            })
        })
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let Some(mut writer) = self.writer.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let place = Arc::clone(&self.place);
        runtime.spawn(async move {
            if let Err(error) = writer.abort().await {
                let error = explain(&place, &error);
                tracing::warn!(%error, "parts of an abandoned object are left in its bucket");
            }
        });
    }
}

fn given_up(place: &str) -> ObjectError {
    ObjectError::Refused(format!(
        "{place}: the object was finished or abandoned and takes no more bytes"
    ))
}

/// An object on its way from the bucket.
pub(crate) struct Arriving {
    pub(crate) place: Arc<str>,
    pub(crate) stream: BoxStream<'static, object_store::Result<Bytes>>,
}

impl ObjectDownload for Arriving {
    fn next(&mut self) -> Pending<'_, Option<Bytes>> {
        Box::pin(async move {
            let next = self.stream.next().await.transpose();
            next.map_err(|error| explain(&self.place, &error))
        })
    }
}
