//! Checkpoints that the coordinator's folder has lost, on their way back from the run's store of objects.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;

use crate::storage::offsite::{Failure, Offsite};
use crate::storage::store::{Incoming, Store};
use crate::system::objects::ObjectError;

/// How long who asks for a checkpoint waits until it has come, before it is told to ask again.
const PATIENCE: Duration = Duration::from_secs(20);

/// The fetches that are under way, by task and number of the checkpoint: whoever asks for the same waits for the same.
#[derive(Debug, Default)]
pub(crate) struct Fetches(Mutex<BTreeMap<(u32, u32), Fetch>>);

/// What became of a fetch, once it is over.
type Fetch = watch::Receiver<Option<Result<(), Failure>>>;

impl Fetches {
    /// Has a checkpoint in the coordinator's folder, which may be in the store of objects alone.
    ///
    /// # Errors
    ///
    /// There is none, it can't be had now, or it takes so long that it has to be asked for again.
    pub(crate) async fn bring(
        &self,
        store: &Arc<Store>,
        offsite: &Arc<Offsite>,
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
        done.unwrap_or_else(|| Err(io::Error::other("its fetch panicked").into()))
            .map_err(Failure::of_get)
    }

    /// The fetch of a checkpoint that is under way, or begins now.
    fn under_way(
        &self,
        store: &Arc<Store>,
        offsite: &Arc<Offsite>,
        (task, number): (u32, u32),
    ) -> Fetch {
        // A map of handles is whole, whoever panicked with it.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, fetch| fetch.has_changed().is_ok() && fetch.borrow().is_none());
        let begin = || {
            let (tell, told) = watch::channel(None);
            let (store, offsite) = (Arc::clone(store), Arc::clone(offsite));
            tokio::spawn(async move {
                let fetched = fetch(&store, &offsite, task, number).await;
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
async fn fetch(
    store: &Arc<Store>,
    offsite: &Arc<Offsite>,
    task: u32,
    number: u32,
) -> Result<(), Failure> {
    let absent = || ObjectError::Absent("there is no such checkpoint".to_owned());
    let (which, refers) = offsite.checkpoint(task, number).ok_or_else(absent)?;
    for digest in &refers {
        offsite.bring_content(store.contents(), *digest).await?;
    }
    let here = Arc::clone(store);
    let incoming = offsite.blocking(move || here.receive(task, which, u64::MAX)).await?;
    let write = |mut incoming: Incoming, data: Bytes| incoming.write(&data).map(|()| incoming);
    let incoming = offsite.bring_checkpoint((task, which), incoming, write).await?;
    let here = Arc::clone(store);
    offsite.blocking(move || here.take_back(task, incoming, &refers)).await
}
