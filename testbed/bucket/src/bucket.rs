//! A bucket as a store of objects.

use std::fmt;
use std::sync::Arc;

use dormouse_coordinator::{ObjectDownload, ObjectError, ObjectStorage, ObjectUpload, Pending};
use dormouse_model::CheckpointStore;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use crate::failure::explain;
use crate::object::{Arriving, Outgoing};
use crate::settings::client;

/// A bucket of S3, or of a server that speaks its protocol.
#[derive(Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// Place of the bucket, as errors name it.
    place: Arc<str>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.place)
    }
}

impl Bucket {
    /// Opens the bucket of these settings, with the credentials of this process' environment. No request is sent to it
    /// yet.
    ///
    /// # Errors
    ///
    /// The environment has no credentials, or the settings can't be used.
    pub fn open(store: &CheckpointStore) -> Result<Self, ObjectError> {
        Self::open_in(store, &|name| std::env::var(name).ok())
    }

    /// Opens the bucket of these settings, with environment variables from a given function instead of this process'
    /// environment.
    ///
    /// # Errors
    ///
    /// See [`Self::open`].
    pub fn open_in(
        store: &CheckpointStore,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ObjectError> {
        // The client asks the process for one; where there is one already, it is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (client, place) = client(store, environment)?;
        Ok(Self {
            store: Arc::new(client),
            prefix: store.url.prefix().to_owned(),
            place: place.into(),
        })
    }

    fn path(&self, key: &str) -> Path {
        match self.prefix.is_empty() {
            true => Path::from(key),
            false => Path::from(format!("{}/{key}", self.prefix)),
        }
    }

    fn key(&self, path: &Path) -> Option<String> {
        let path = path.as_ref();
        match self.prefix.is_empty() {
            true => Some(path.to_owned()),
            false => path.strip_prefix(&self.prefix)?.strip_prefix('/').map(str::to_owned),
        }
    }
}

impl ObjectStorage for Bucket {
    fn list_objects(&self, folder: String) -> Pending<'_, Vec<(String, u64)>> {
        Box::pin(async move {
            let folder = self.path(&folder);
            let found = self.store.list(Some(&folder)).try_collect::<Vec<_>>().await;
            let found = found.map_err(|error| explain(&self.place, &error))?;
            let all =
                found.iter().filter_map(|object| Some((self.key(&object.location)?, object.size)));
            Ok(all.collect())
        })
    }

    fn begin_upload(&self, key: String) -> Box<dyn ObjectUpload> {
        let (store, place) = (Arc::clone(&self.store), Arc::clone(&self.place));
        Box::new(Outgoing::begin(store, self.path(&key), place))
    }

    fn begin_download(&self, key: String) -> Pending<'_, Box<dyn ObjectDownload>> {
        Box::pin(async move {
            let found = self.store.get(&self.path(&key)).await;
            let stream = found.map_err(|error| explain(&self.place, &error))?.into_stream();
            let arriving = Arriving { place: Arc::clone(&self.place), stream };
            Ok(Box::new(arriving) as Box<dyn ObjectDownload>)
        })
    }

    fn remove(&self, key: String) -> Pending<'_, ()> {
        Box::pin(async move {
            match self.store.delete(&self.path(&key)).await {
                Ok(()) => Ok(()),
                Err(error) => match explain(&self.place, &error) {
                    ObjectError::Absent(_) => Ok(()),
                    error => Err(error),
                },
            }
        })
    }
}
