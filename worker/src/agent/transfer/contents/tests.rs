#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeMap,
    net::TcpListener,
    path::Path,
    pin::Pin,
    sync::{Mutex, MutexGuard},
};

use dormouse_proto::v1::{
    self, ContentReceipt,
    content_store_server::{ContentStore, ContentStoreServer},
};
use tokio_stream::{Stream, wrappers::TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Endpoint};

use super::*;
use crate::agent::gate::VmGate;

/// Contents in memory, the number of bytes received, and the number of contents requested.
#[derive(Clone, Default)]
struct Kept {
    all: Arc<Mutex<All>>,
    /// Whether the coordinator is older than `GetInputs` and gives each content by a call.
    is_old: bool,
    /// Whether the first answer to `GetInputs` breaks off after one chunk.
    breaks_off: Arc<Mutex<bool>>,
}

type All = (BTreeMap<Vec<u8>, Vec<u8>>, u64, u64);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap()
    }
}

#[tonic::async_trait]
impl ContentStore for Kept {
    type GetStream = Pin<Box<dyn Stream<Item = Result<ContentChunk, Status>> + Send>>;

    type GetInputsStream = Self::GetStream;

    async fn get_inputs(
        &self,
        asked: Request<v1::InputsRef>,
    ) -> Result<Response<Self::GetInputsStream>, Status> {
        if self.is_old {
            return Err(Status::unimplemented("what is that?"));
        }
        let digests = asked.into_inner().digests;
        self.lock().2 += digests.len() as u64;
        let mut all = Vec::new();
        for digest in digests {
            let kept = self.lock().0.get(&digest[..]).cloned();
            all.extend(kept.ok_or_else(|| Status::not_found("there is no such content"))?);
        }
        let chunk = |data: &[u8]| {
            Ok(ContentChunk { data: data.to_vec().into(), ..ContentChunk::default() })
        };
        let mut chunks: Vec<_> = all.chunks(1_700).map(chunk).collect();
        if std::mem::take(&mut *self.breaks_off.lock().unwrap()) {
            chunks.truncate(3);
            chunks.push(Err(Status::unavailable("it goes away")));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn lacks(&self, asked: Request<Contents>) -> Result<Response<Contents>, Status> {
        let mut digests = asked.into_inner().digests;
        digests.retain(|digest| !self.lock().0.contains_key(&digest[..]));
        Ok(Response::new(Contents { digests }))
    }

    async fn put(
        &self,
        chunks: Request<Streaming<ContentChunk>>,
    ) -> Result<Response<ContentReceipt>, Status> {
        let (mut chunks, mut of, mut content) = (chunks.into_inner(), None, Vec::new());
        while let Some(chunk) = chunks.message().await? {
            of = of.or(chunk.content);
            content.extend_from_slice(&chunk.data);
        }
        let mut kept = self.lock();
        let bytes = content.len() as u64;
        kept.0.insert(of.unwrap().digest.to_vec(), content);
        kept.1 += bytes;
        Ok(Response::new(ContentReceipt { bytes }))
    }

    async fn get(
        &self,
        asked: Request<v1::ContentRef>,
    ) -> Result<Response<Self::GetStream>, Status> {
        self.lock().2 += 1;
        let kept = self.lock().0.get(&asked.get_ref().digest[..]).cloned();
        let content = kept.ok_or_else(|| Status::not_found("there is no such content"))?;
        let chunks: Vec<_> = content
            .chunks(1000)
            .map(|data| Ok(ContentChunk { data: data.to_vec().into(), ..ContentChunk::default() }))
            .collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }
}

/// Transfers with a coordinator that keeps contents in memory.
fn transfers(kept: &Kept) -> WorkerTransfers {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).unwrap());
    let service = ContentStoreServer::new(kept.clone());
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming));
    WorkerTransfers::new(
        Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy(),
        false,
    )
}

fn files(directory: &Path, contents: &[&[u8]]) -> (Vec<(Hash, u64)>, Open) {
    let of = |content: &&[u8]| (blake3::hash(content), content.len() as u64);
    for content in contents {
        std::fs::write(directory.join(of(content).0.to_hex().as_str()), content).unwrap();
    }
    let directory = directory.to_owned();
    let open: Open = Arc::new(move |digest| {
        File::open(directory.join(digest.to_hex().as_str())).map_err(|e| e.to_string())
    });
    (contents.iter().map(of).collect(), open)
}

const OF: Of<'_> = ("run", 7, 1);

#[tokio::test]
async fn only_what_is_lacking_is_sent() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), Kept::default());
    let (transfers, pass) = (transfers(&kept), VmGate::new().make_pass());
    let (large, changed) = (vec![1; 600_000], vec![2; 300_000]);
    let (contents, open) = files(dir.path(), &[&large, b""]);
    let sent = transfers.put_contents(&pass, OF, contents, open).await;
    assert_eq!((sent, kept.lock().1), (Ok(600_000), 600_000));
    let (contents, open) = files(dir.path(), &[&large, &changed, b""]);
    let sent = transfers.put_contents(&pass, OF, contents, open).await;
    assert_eq!((sent, kept.lock().1), (Ok(300_000), 900_000));
    assert_eq!(kept.lock().0.len(), 3);
    // One that is not there any more is said to be so.
    let gone: Open = Arc::new(|_| Err("it has gone".to_owned()));
    let missing = vec![(blake3::hash(b"gone"), 4)];
    assert_eq!(
        transfers.put_contents(&pass, OF, missing, gone).await,
        Err("it has gone".to_owned())
    );
}

/// Four tasks that begin at once with the same 30 inputs.
#[tokio::test]
async fn inputs_come_once_to_a_host_however_many_tasks_begin_with_them_at_once() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), Kept::default());
    let (transfers, pass) = (transfers(&kept), VmGate::new().make_pass());
    let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
    let input = |n: u8| {
        let content = vec![n; 1_000];
        let digest = blake3::hash(&content);
        kept.lock().0.insert(digest.as_bytes().to_vec(), content);
        TaskInput { path: format!("lib/{n}"), digest, bytes: 1_000, executable: false }
    };
    let inputs: Vec<_> = (0..30).map(input).collect();
    let bring = || transfers.fetch_contents(&cache, &pass, OF, &inputs);
    let (a, b, c, d) = tokio::join!(bring(), bring(), bring(), bring());
    for held in [a, b, c, d] {
        assert!(held.unwrap().missing_contents().is_empty());
    }
    assert_eq!(kept.lock().2, 30);
}

/// Contents of zero bytes, and some that end within a chunk. If the coordinator goes away, it is asked again only for
/// contents that haven't arrived.
#[tokio::test]
async fn inputs_come_in_one_stream_or_each_by_itself_from_a_coordinator_that_knows_no_other() {
    for (is_old, breaks_off, asked) in
        [(false, false, 5..=5), (true, false, 5..=5), (false, true, 6..=9)]
    {
        let breaks_off = Arc::new(Mutex::new(breaks_off));
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept { is_old, breaks_off, ..Kept::default() };
        let (transfers, pass) = (transfers(&kept), VmGate::new().make_pass());
        let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
        let input = |(n, bytes): (u8, usize)| {
            let content = vec![n; bytes];
            let digest = blake3::hash(&content);
            kept.lock().0.insert(digest.as_bytes().to_vec(), content);
            TaskInput { path: n.to_string(), digest, bytes: bytes as u64, executable: false }
        };
        let sizes = [(1, 1_000), (2, 0), (3, 5_000), (4, 1), (5, 3_400)];
        let inputs = sizes.map(input);
        let held = transfers.fetch_contents(&cache, &pass, OF, &inputs).await.unwrap();
        assert!(held.missing_contents().is_empty());
        for (input, (n, bytes)) in inputs.iter().zip(sizes) {
            let mut content = Vec::new();
            io::Read::read_to_end(&mut held.open(&input.digest).unwrap(), &mut content).unwrap();
            assert_eq!(content, vec![n; bytes]);
        }
        let times = kept.lock().2;
        assert!(asked.contains(&times), "{times} contents were asked for");
    }
}

#[tokio::test]
async fn inputs_come_once_and_what_is_damaged_does_not_come() {
    let (dir, kept) = (tempfile::tempdir().unwrap(), Kept::default());
    let (transfers, pass) = (transfers(&kept), VmGate::new().make_pass());
    let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
    let input = |content: &[u8]| TaskInput {
        path: "a".to_owned(),
        digest: blake3::hash(content),
        bytes: content.len() as u64,
        executable: false,
    };
    let content = vec![3; 10_000];
    let digest = blake3::hash(&content).as_bytes().to_vec();
    kept.lock().0.insert(digest.clone(), content.clone());
    let inputs = [input(&content), input(&content)];
    let held = transfers.fetch_contents(&cache, &pass, OF, &inputs).await.unwrap();
    assert!(held.missing_contents().is_empty());
    // It is here: the coordinator is asked no more.
    kept.lock().0.clear();
    transfers.fetch_contents(&cache, &pass, OF, &inputs).await.unwrap();
    let absent = transfers.fetch_contents(&cache, &pass, OF, &[input(b"absent")]).await;
    assert!(matches!(absent, Err(FetchError::Absent(_))), "{absent:?}");
    let other = input(b"another one");
    kept.lock().0.insert(other.digest.as_bytes().to_vec(), b"Another one".to_vec());
    let error = transfers.fetch_contents(&cache, &pass, OF, &[other]).await.unwrap_err();
    assert!(explain_error(&error).contains("its digest does not fit"), "{error}");
    pass.revoke_launch();
    let revoked = transfers.fetch_contents(&cache, &pass, OF, &[input(b"absent")]).await;
    assert!(matches!(revoked, Err(FetchError::Revoked(_))), "{revoked:?}");
}
