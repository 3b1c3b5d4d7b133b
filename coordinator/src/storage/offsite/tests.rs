//! Tests with an object store in memory that can be made unreachable.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tonic::Code;

use super::*;
use crate::storage::fetches::ActiveFetches;
use crate::storage::store::CheckpointFolder;
use crate::system::objects::Pending;

/// Objects by their keys.
#[derive(Clone, Debug, Default)]
struct Memory {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    is_away: Arc<AtomicBool>,
}

impl Memory {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.objects.lock().expect("no panic")
    }

    fn keys(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    fn here(&self) -> Result<(), ObjectError> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(ObjectError::Unreachable("the memory is away".to_owned())),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Outgoing(Memory, String, BytesMut);

struct Arriving(Option<Bytes>);

impl ObjectStorage for Memory {
    fn list_objects(&self, folder: String) -> Pending<'_, Vec<(String, u64)>> {
        let folder = format!("{folder}/");
        Box::pin(async move {
            self.here()?;
            let all = self.all();
            let found = all.iter().filter(|(key, _)| key.starts_with(&folder));
            Ok(found.map(|(key, data)| (key.clone(), data.len() as u64)).collect())
        })
    }

    fn begin_upload(&self, key: String) -> Box<dyn ObjectUpload> {
        Box::new(Outgoing(self.clone(), key, BytesMut::new()))
    }

    fn begin_download(&self, key: String) -> Pending<'_, Box<dyn ObjectDownload>> {
        Box::pin(async move {
            self.here()?;
            let found = self.all().get(&key).cloned();
            let found = found.ok_or_else(|| ObjectError::Absent(format!("no {key}")))?;
            Ok(Box::new(Arriving(Some(found))) as Box<dyn ObjectDownload>)
        })
    }

    fn remove(&self, key: String) -> Pending<'_, ()> {
        Box::pin(async move {
            self.here()?;
            self.all().remove(&key);
            Ok(())
        })
    }
}

impl ObjectUpload for Outgoing {
    fn write(&mut self, data: Bytes) -> Pending<'_, ()> {
        self.2.extend_from_slice(&data);
        Box::pin(async move { self.0.here() })
    }

    fn finish_upload(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.0.here()?;
            self.0.all().insert(self.1.clone(), self.2.split().freeze());
            Ok(())
        })
    }
}

impl ObjectDownload for Arriving {
    fn next(&mut self) -> Pending<'_, Option<Bytes>> {
        Box::pin(async move { Ok(self.0.take()) })
    }
}

async fn opened(memory: &Memory, folder: &Path) -> Arc<CheckpointFolder> {
    let objects: Arc<dyn ObjectStorage> = Arc::new(memory.clone());
    let offsite =
        OffsiteStore::open(objects, "run", BlockingThreads::System).await.expect("it is there");
    let contents = ContentPool::open(&folder.join("contents")).expect("room");
    let store =
        CheckpointFolder::open(&folder.join("checkpoints"), Arc::new(contents)).expect("room");
    Arc::new(store.with_offsite(Some(offsite)))
}

fn offsite(store: &Arc<CheckpointFolder>) -> Arc<OffsiteStore> {
    Arc::clone(store.offsite().expect("it has one"))
}

fn content(store: &CheckpointFolder, data: &[u8]) -> Hash {
    let digest = blake3::hash(data);
    let mut incoming = store.contents().receive_content(digest, data.len() as u64).expect("room");
    incoming.write(data).expect("room");
    store.contents().finish_content(incoming).expect("it is whole");
    digest
}

/// Stores a checkpoint as the desk does.
async fn put(
    store: &Arc<CheckpointFolder>,
    which: Which,
    data: &[u8],
    refers: &[Hash],
) -> Result<(), OffsiteError> {
    let mut sending = offsite(store).begin_upload(7, which);
    let mut incoming = store.receive_checkpoint(7, which, 1)?;
    sending.write(Bytes::copy_from_slice(data)).await?;
    incoming.write(data)?;
    sending.finish_upload(store.contents(), refers).await?;
    store.finish_checkpoint(7, incoming, refers)?;
    offsite(store).prune_task(7, store.newest_logged(7)).await;
    // The log hears of it from the worker, which has its receipt by then.
    store.has_logged(7, Some(which.0));
    Ok(())
}

async fn brought(store: &Arc<CheckpointFolder>, number: u32) -> Result<(), Status> {
    ActiveFetches::default().bring_checkpoint(store, &offsite(store), (7, number)).await
}

fn read(store: &CheckpointFolder, number: u32) -> Vec<u8> {
    let mut data = Vec::new();
    let mut file = store.open_checkpoint(7, number).expect("it is here");
    io::Read::read_to_end(&mut file, &mut data).expect("readable");
    data
}

#[tokio::test]
async fn what_the_folder_has_lost_comes_back_with_its_contents() {
    let (memory, folder) = (Memory::default(), tempfile::tempdir().expect("a folder"));
    let store = opened(&memory, folder.path()).await;
    let digest = content(&store, b"a large file");
    put(&store, (1, 1), b"first", &[digest]).await.expect("it is there");
    put(&store, (2, 1), b"second", &[digest]).await.expect("it is there");
    let hex = digest.to_hex();
    let keys = [
        "run/about".to_owned(),
        "run/checkpoints/7/1.1".to_owned(),
        "run/checkpoints/7/2.1".to_owned(),
        format!("run/contents/{hex}"),
        "run/refers/7/1.1".to_owned(),
        "run/refers/7/2.1".to_owned(),
    ];
    assert_eq!(memory.keys(), keys);
    drop(store);
    for lost in ["checkpoints", "contents"] {
        std::fs::remove_dir_all(folder.path().join(lost)).expect("it is ours");
    }
    let store = opened(&memory, folder.path()).await;
    assert!(store.may_hold(7) && !store.has_checkpoint(7, 2).expect("readable"));
    brought(&store, 2).await.expect("it comes");
    assert_eq!(read(&store, 2), b"second");
    assert!(store.contents().is_of_checkpoint(7, &digest).expect("readable"));
    assert!(store.contents().holds_content(&digest).expect("readable"));
    // It goes on as if nothing had been.
    store.has_logged(7, Some(2));
    put(&store, (3, 2), b"third", &[digest]).await.expect("it is there");
    let absent = brought(&store, 4).await.expect_err("there is none");
    assert_eq!(absent.code(), Code::NotFound, "{absent}");
}

#[tokio::test]
async fn the_same_go_on_either_side_and_contents_with_the_last_that_refers_to_them() {
    let (memory, folder) = (Memory::default(), tempfile::tempdir().expect("a folder"));
    let store = opened(&memory, folder.path()).await;
    let (old, new) = (content(&store, b"old"), content(&store, b"new"));
    put(&store, (1, 1), b"1", &[old]).await.expect("it is there");
    for number in 2..6 {
        put(&store, (number, 1), b"n", &[new]).await.expect("it is there");
    }
    let kept = || {
        let all = memory.keys().into_iter();
        all.filter_map(|key| Some(key.strip_prefix("run/checkpoints/7/")?.to_owned()))
            .collect::<Vec<_>>()
    };
    // Three that the log had when the last came, and the last.
    assert_eq!(kept(), ["2.1", "3.1", "4.1", "5.1"]);
    let here = || {
        let all = std::fs::read_dir(folder.path().join("checkpoints/7")).expect("it is there");
        let all = all.map(|entry| entry.expect("readable").file_name().into_string());
        let mut all: Vec<_> = all.map(|name| name.expect("it is in ASCII")).collect();
        all.sort();
        all
    };
    assert_eq!(here(), kept());
    let has = |digest: &Hash| memory.keys().contains(&format!("run/contents/{}", digest.to_hex()));
    assert!(!has(&old) && has(&new));
    // The second attempt went on from checkpoint 3.
    put(&store, (4, 2), b"n", &[]).await.expect("it is there");
    assert_eq!(kept(), ["2.1", "3.1", "4.2"]);
    assert_eq!(here(), kept());
    offsite(&store).forget_task(7).await;
    assert_eq!(memory.keys(), ["run/about"]);
    put(&store, (6, 3), b"n", &[new]).await.expect("it is there");
    offsite(&store).close().await.expect("it goes");
    assert_eq!(memory.keys(), [""; 0]);
}

#[tokio::test]
async fn a_checkpoint_that_never_became_whole_is_none_whatever_went_before_it() {
    let (memory, folder) = (Memory::default(), tempfile::tempdir().expect("a folder"));
    let store = opened(&memory, folder.path()).await;
    put(&store, (1, 1), b"first", &[content(&store, b"a large file")]).await.expect("it is there");
    memory.all().insert("run/refers/7/2.1".to_owned(), vec![7; 32].into());
    memory.all().insert("run/refers/8/1.1".to_owned(), vec![7; 32].into());
    // What is not the run's is nobody's business.
    memory.all().insert("run/checkpoints/x/y".to_owned(), Bytes::new());
    let store = opened(&memory, folder.path()).await;
    assert_eq!(offsite(&store).task_numbers(), [7]);
    let absent = brought(&store, 2).await.expect_err("there is none");
    assert_eq!(absent.code(), Code::NotFound, "{absent}");
    brought(&store, 1).await.expect("it comes");
    assert_eq!(read(&store, 1), b"first");
}

#[tokio::test]
async fn a_store_that_is_away_is_no_reason_to_begin_anew() {
    let (memory, folder) = (Memory::default(), tempfile::tempdir().expect("a folder"));
    let store = opened(&memory, folder.path()).await;
    put(&store, (1, 1), b"first", &[]).await.expect("it is there");
    memory.is_away.store(true, Ordering::Relaxed);
    let refused = put(&store, (2, 1), b"second", &[]).await.expect_err("it is away").of_put();
    assert_eq!(refused.code(), Code::Internal, "{refused}");
    assert_eq!(refused.message(), "the object store: the memory is away");
    assert!(!store.has_checkpoint(7, 2).expect("readable"), "it is stored on neither side");
    assert_eq!(read(&store, 1), b"first");
    std::fs::remove_dir_all(folder.path().join("checkpoints/7")).expect("it is ours");
    std::fs::create_dir(folder.path().join("checkpoints/7")).expect("room");
    let away = brought(&store, 1).await.expect_err("it is away");
    assert_eq!(away.code(), Code::Unavailable, "whoever asks asks again: {away}");
    memory.is_away.store(false, Ordering::Relaxed);
    brought(&store, 1).await.expect("it comes");
    assert_eq!(read(&store, 1), b"first");
}
