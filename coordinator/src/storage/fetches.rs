//! Checkpoints that are missing in the coordinator's folder and are fetched from the run's object store.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;

use crate::storage::offsite::{OffsiteError, OffsiteStore};
use crate::storage::store::{CheckpointFolder, IncomingCheckpoint};
use crate::system::objects::ObjectError;

/// Time for which a request for a checkpoint waits until it is told to try again.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fetches under way, by task and number of the checkpoint. Requests for the same checkpoint share one fetch.
#[derive(Debug, Default)]
pub(crate) struct ActiveFetches(Mutex<BTreeMap<(u32, u32), Fetch>>);

/// Result of a fetch, once it is over.
type Fetch = watch::Receiver<Option<Result<(), OffsiteError>>>;

impl ActiveFetches {
    /// Fetches a checkpoint into the coordinator's folder, if only the object store has it.
    ///
    /// # Errors
    ///
    /// No such checkpoint exists, it can't be fetched now, or that takes so long that the request must be repeated.
    pub(crate) async fn bring_checkpoint(
        &self,
        store: &Arc<CheckpointFolder>,
        offsite: &Arc<OffsiteStore>,
        (task, number): (u32, u32),
    ) -> Result<(), Status> {
        let mut fetch = self.under_way(store, offsite, (task, number));
        let over = fetch.wait_for(Option::is_some);
        let done = match timeout(PATIENCE, over).await {
            Ok(Ok(done)) => done.clone(),
            Ok(Err(_)) => None,
            Err(_) => {
                let why = "the checkpoint is still on its way from the object store";
                return Err(Status::unavailable(why));
            }
        };
        done.unwrap_or_else(|| {
            Err(io::Error::other("the coordinator failed while it fetched the checkpoint (a bug)")
                .into())
        })
        .map_err(OffsiteError::of_get)
    }

    /// Returns the fetch of a checkpoint that is under way, or begins one.
    fn under_way(
        &self,
        store: &Arc<CheckpointFolder>,
        offsite: &Arc<OffsiteStore>,
        (task, number): (u32, u32),
    ) -> Fetch {
        // A map of handles is whole, whoever panicked with it.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, fetch| fetch.has_changed().is_ok() && fetch.borrow().is_none());
        let begin = || {
            let (tell, told) = watch::channel(None);
            let (store, offsite) = (Arc::clone(store), Arc::clone(offsite));
            tokio::spawn(async move {
                let fetched = fetch_checkpoint(&store, &offsite, task, number).await;
                if let Err(error) = &fetched {
                    tracing::warn!(task, number, ?error, "a checkpoint can't be fetched");
                }
                tell.send_replace(Some(fetched));
            });
            told
        };
        all.entry((task, number)).or_insert_with(begin).clone()
    }
}

/// Fetches a checkpoint, after the contents that it refers to.
async fn fetch_checkpoint(
    store: &Arc<CheckpointFolder>,
    offsite: &Arc<OffsiteStore>,
    task: u32,
    number: u32,
) -> Result<(), OffsiteError> {
    let absent = || {
        ObjectError::Absent(format!("the object store has no checkpoint {number} of task {task}"))
    };
    let (which, refers) = offsite.find_checkpoint(task, number).ok_or_else(absent)?;
    for digest in &refers {
        offsite.bring_content(store.contents(), *digest).await?;
    }
    let here = Arc::clone(store);
    let incoming =
        offsite.run_blocking(move || here.receive_checkpoint(task, which, u64::MAX)).await?;
    let write =
        |mut incoming: IncomingCheckpoint, data: Bytes| incoming.write(&data).map(|()| incoming);
    let incoming = offsite.bring_checkpoint((task, which), incoming, write).await?;
    let here = Arc::clone(store);
    offsite.run_blocking(move || here.take_back(task, incoming, &refers)).await
}
