#![expect(clippy::unwrap_used, reason = "tests")]

use super::{parcel::CHUNK, *};
use std::{
    collections::BTreeMap,
    io::Read as _,
    net::{SocketAddr, TcpListener},
    path::Path,
    pin::Pin,
    thread,
};

use dormouse_proto::v1::{
    CheckpointReceipt, FromWorker, JoinReply, JoinRequest, ToWorker,
    coordinator_server::{Coordinator, CoordinatorServer},
};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};
use tonic::{Request, Response, transport::Endpoint};

use crate::{
    agent::gate::VmGate,
    store::{ImageKey, SavedProgress},
    workspace::TaskName,
};

const SOON: Duration = Duration::from_secs(10);

/// A coordinator that accepts chunks only if `takes` is set, and that answers fetches with the bytes `gives` and no
/// more.
#[derive(Default)]
struct Silent {
    takes: bool,
    gives: Option<Vec<u8>>,
}

type Chunks<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Coordinator for Silent {
    async fn join(&self, _: Request<JoinRequest>) -> Result<Response<JoinReply>, Status> {
        Err(Status::unimplemented("nobody joins"))
    }

    type SessionStream = Chunks<ToWorker>;
    type GetCheckpointStream = Chunks<CheckpointChunk>;

    async fn session(
        &self,
        _: Request<Streaming<FromWorker>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        Err(Status::unimplemented("no sessions"))
    }

    async fn put_checkpoint(
        &self,
        chunks: Request<Streaming<CheckpointChunk>>,
    ) -> Result<Response<CheckpointReceipt>, Status> {
        if !self.takes {
            return std::future::pending().await;
        }
        let (mut chunks, mut bytes) = (chunks.into_inner(), 0);
        while let Some(chunk) = chunks.message().await? {
            bytes += chunk.data.len() as u64;
        }
        if bytes < 4 << 20 {
            return Err(Status::invalid_argument("it has less than its manifest lists"));
        }
        Ok(Response::new(CheckpointReceipt { bytes }))
    }

    async fn get_checkpoint(
        &self,
        _: Request<CheckpointRef>,
    ) -> Result<Response<Self::GetCheckpointStream>, Status> {
        let Some(data) = self.gives.clone() else { return std::future::pending().await };
        let first = CheckpointChunk { data: data.into(), ..CheckpointChunk::default() };
        let chunks = tokio_stream::once(Ok(first)).chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(chunks)))
    }
}

/// Returns transfers with a [`Silent`] coordinator. Must be called in a runtime.
fn silent(gives: Option<Vec<u8>>, still: Duration) -> WorkerTransfers {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).unwrap());
    let service = CoordinatorServer::new(Silent { takes: false, gives });
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming));
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    WorkerTransfers { still, ..WorkerTransfers::new(channel, false) }
}

fn runtime(blocking: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(blocking)
        .enable_all()
        .build()
        .unwrap()
}

fn reference() -> CheckpointRef {
    CheckpointRef { run: "r".to_owned(), task: 1, checkpoint: 1, attempt: 1 }
}

fn store(directory: &Path) -> LocalCheckpoints {
    LocalCheckpoints::open(directory).unwrap().with_key(ImageKey::new(&[5; 32]).unwrap())
}

fn expected() -> ExpectedCheckpoint {
    let program = String::new();
    ExpectedCheckpoint { task: name(), sequence: 1, attempts: 1..=1, program, bytes: u64::MAX }
}

fn name() -> TaskName {
    TaskName::new("r", "1").unwrap()
}

/// Returns a checkpoint of more bytes than the connection and the chunks in transit can hold.
fn checkpoint(directory: &Path) -> StoredCheckpoint {
    let draft = store(directory).begin_checkpoint(&name()).unwrap();
    std::fs::write(draft.images_directory().join("pages-1.img"), vec![7; 4 << 20]).unwrap();
    draft
        .commit_checkpoint(
            String::new(),
            SavedProgress { attempt: 1, ..SavedProgress::default() },
            (vec![], vec![]),
            String::new(),
            &BTreeMap::new(),
        )
        .unwrap()
}

#[test]
fn an_upload_that_nobody_takes_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = checkpoint(dir.path());
    let why = runtime(4).block_on(async {
        let transfers = silent(None, Duration::from_millis(100));
        timeout(
            SOON,
            transfers.put_checkpoint(
                &VmGate::new().make_pass(),
                reference(),
                checkpoint,
                Arc::default(),
            ),
        )
        .await
    });
    let why = why.expect("it hangs").unwrap_err();
    assert!(why.starts_with("no data moved for 100 ms"), "{why}");
}

/// Returns transfers with a coordinator that doesn't run, and the address at which it would listen.
fn away() -> (WorkerTransfers, SocketAddr) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    (WorkerTransfers { still: SOON, ..WorkerTransfers::new(channel, false) }, address)
}

#[test]
fn what_nobody_answers_is_sent_again_until_somebody_does_or_nobody_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = checkpoint(dir.path());
    let (put, given_up) = runtime(4).block_on(async {
        let (transfers, address) = away();
        let pass = VmGate::new().make_pass();
        let put = transfers.put_checkpoint(&pass, reference(), checkpoint.clone(), Arc::default());
        tokio::pin!(put);
        let early = timeout(Duration::from_millis(500), &mut put).await;
        assert!(early.is_err(), "it gave up: {early:?}");
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let service = CoordinatorServer::new(Silent { takes: true, gives: None });
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        let done = timeout(SOON, put).await;
        let (nowhere, _) = away();
        let put = nowhere.put_checkpoint(&pass, reference(), checkpoint, Arc::default());
        let (given_up, ()) = tokio::join!(timeout(SOON, put), async { pass.revoke_launch() });
        (done, given_up)
    });
    assert!(put.expect("it hangs").unwrap() > 4 << 20, "it is not taken when it can be");
    given_up.expect("it hangs").unwrap_err();
}

#[test]
fn a_checkpoint_that_vanishes_while_it_is_sent_is_refused_for_its_missing_file() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = checkpoint(dir.path());
    let why = runtime(4).block_on(async {
        let (transfers, address) = away();
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let service = CoordinatorServer::new(Silent { takes: true, gives: None });
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        store(dir.path()).remove_task(&name()).unwrap();
        let pass = VmGate::new().make_pass();
        timeout(SOON, transfers.put_checkpoint(&pass, reference(), checkpoint, Arc::default()))
            .await
    });
    let why = why.expect("it hangs").unwrap_err();
    assert!(why.contains("pages-1.img"), "{why}");
}

#[test]
fn a_fetch_that_stands_still_is_given_up_and_leaves_nothing() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut bytes = Vec::new();
    checkpoint(there.path()).export_checkpoint(&mut bytes).unwrap();
    bytes.truncate(CHUNK);
    let store = store(here.path());
    for gives in [None, Some(bytes)] {
        let fetched = runtime(4).block_on(async {
            let transfers = silent(gives, Duration::from_millis(100));
            let pass = VmGate::new().make_pass();
            timeout(SOON, transfers.fetch_checkpoint(&store, &pass, reference(), &expected())).await
        });
        let error = fetched.expect("it hangs").unwrap_err();
        assert!(matches!(error, FetchError::Stuck(_)), "{error}");
        assert!(store.complete_numbers(&name()).unwrap().is_empty());
    }
    // What had come of it lay in the folder of its number.
    let left = std::fs::read_dir(here.path().join("r/1")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn a_transfer_that_gets_on_too_slowly_is_given_up() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut bytes = Vec::new();
    checkpoint(there.path()).export_checkpoint(&mut bytes).unwrap();
    bytes.truncate(CHUNK);
    let store = store(here.path());
    let (put, fetched) = runtime(4).block_on(async {
        let hour = Duration::from_secs(3_600);
        let slow = || Some(Duration::from_millis(100));
        let puts = WorkerTransfers { within: slow(), ..silent(None, hour) };
        let fetches = WorkerTransfers { within: slow(), ..silent(Some(bytes), hour) };
        let pass = VmGate::new().make_pass();
        let put = timeout(
            SOON,
            puts.put_checkpoint(&pass, reference(), checkpoint(there.path()), Arc::default()),
        );
        let expected = expected();
        let fetched =
            timeout(SOON, fetches.fetch_checkpoint(&store, &pass, reference(), &expected));
        tokio::join!(put, fetched)
    });
    let why = put.expect("it hangs").unwrap_err();
    assert!(why.contains("more slowly than"), "{why}");
    let error = fetched.expect("it hangs").unwrap_err();
    assert!(matches!(error, FetchError::Stuck(StuckTransfer::Slow(_))), "{error}");
}

#[test]
fn however_many_uploads_stand_still_the_pool_is_there_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoint = checkpoint(dir.path());
    let runtime = runtime(AT_ONCE + 1);
    let done = runtime.block_on(async {
        let transfers = Arc::new(silent(None, Duration::from_secs(3600)));
        for _ in 0..4 * AT_ONCE {
            let (transfers, checkpoint) = (Arc::clone(&transfers), checkpoint.clone());
            let pass = VmGate::new().make_pass();
            tokio::spawn(async move {
                transfers.put_checkpoint(&pass, reference(), checkpoint, Arc::default()).await
            });
        }
        let all_wait = async {
            while transfers.uploads.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, all_wait).await.expect("the uploads do not begin");
        timeout(SOON, spawn_blocking(|| 7)).await
    });
    runtime.shutdown_background();
    assert_eq!(done.expect("uploads hold the whole pool").unwrap(), 7);
}

#[test]
fn what_is_written_arrives_in_chunks_and_reads_back() {
    let (chunks, mut written) = mpsc::channel(IN_FLIGHT);
    let (forward, chunks_out) = mpsc::channel(IN_FLIGHT);
    let reference = CheckpointRef { run: "r".to_owned(), task: 1, checkpoint: 2, attempt: 1 };
    let mut writer = ChunkWriter::new(chunks, (reference.clone(), Vec::new()), None);
    let sent: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let expected = sent.clone();
    let source = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.flush().unwrap();
    });
    let relay = thread::spawn(move || {
        let mut references = Vec::new();
        while let Some(chunk) = written.blocking_recv() {
            let chunk: CheckpointChunk = chunk;
            references.push(chunk.checkpoint);
            forward.blocking_send(chunk.data).unwrap();
        }
        references
    });
    let mut reader = ChunkReader::new(chunks_out);
    let mut arrived = Vec::new();
    reader.read_to_end(&mut arrived).unwrap();
    source.join().unwrap();
    assert_eq!(relay.join().unwrap(), [Some(reference), None, None]);
    assert!(arrived == expected);
}

/// Sends these bytes over a connection that takes `wire` for each chunk; returns how many bytes were sent, and the
/// bytes after unpacking.
fn over(wire: Duration, sent: Vec<u8>) -> (usize, Vec<u8>) {
    let (chunks, mut written) = mpsc::channel(IN_FLIGHT);
    let of = (reference(), Vec::new());
    let mut writer = ChunkWriter::<CheckpointChunk>::new(chunks, of, Some(Packing::begin()));
    let source = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.flush().unwrap();
    });
    let (mut bytes, mut arrived) = (0, Vec::new());
    while let Some(mut chunk) = written.blocking_recv() {
        // This is its slowness: nothing is waited for.
        thread::sleep(wire);
        bytes += chunk.data.len();
        arrived.extend_from_slice(&unpack(&mut chunk).unwrap());
    }
    source.join().unwrap();
    (bytes, arrived)
}

#[test]
fn what_waits_for_the_wire_is_packed_if_that_makes_it_shorter() {
    let plain = vec![7; 64 * CHUNK];
    let (bytes, arrived) = over(Duration::from_millis(10), plain.clone());
    assert!(bytes < plain.len() / 2, "{bytes} of {}", plain.len());
    assert!(arrived == plain);
    // Bytes that look like chance are sent as they are.
    let mut state = 1_u64;
    let random: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    })
    .take(16 * CHUNK)
    .collect();
    let (bytes, arrived) = over(Duration::from_millis(10), random.clone());
    assert_eq!(bytes, random.len());
    assert!(arrived == random);
}
