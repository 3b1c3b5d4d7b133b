//! The calls of workers about contents.

use std::io;
use std::sync::Arc;

use blake3::{Hash, Hasher};
use dormouse_proto::{Deadline, v1};
use dormouse_units::{Attempt, HostId, TaskId};
use tonic::{Request, Response, Status, Streaming};

use crate::contents::{ContentPool, ContentRefusal, InputsReader, digest_of, read_digests};
use crate::protocol::given::OutgoingStream;
use crate::server::api::{ClientApi, takes_packed};
use crate::server::desk::{WorkerInbound, next_chunk, refused_status};
use crate::storage::transfers::{ChunkSource, STALL};

#[tonic::async_trait]
impl v1::content_store_server::ContentStore for ClientApi {
    type GetStream = OutgoingStream<v1::ContentChunk>;
    type GetInputsStream = OutgoingStream<v1::ContentChunk>;

    async fn lacks(
        &self,
        request: Request<v1::Contents>,
    ) -> Result<Response<v1::Contents>, Status> {
        let host = self.host_of(&request)?;
        let asked = read_digests(&request.get_ref().digests)?;
        let _turn = self.desk.transfers.take_turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let look = move || find_lacking(&contents, asked);
        let lacking = self.desk.transfers.run_blocking(look).await?;
        let digests = lacking.iter().map(|digest| digest.as_bytes().to_vec().into()).collect();
        Ok(Response::new(v1::Contents { digests }))
    }

    async fn put(
        &self,
        request: Request<Streaming<v1::ContentChunk>>,
    ) -> Result<Response<v1::ContentReceipt>, Status> {
        let host = self.host_of(&request)?;
        let mut chunks = request.into_inner();
        let first = next_chunk(&mut chunks, STALL).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("no chunk was received"))?;
        let of = first
            .content
            .clone()
            .ok_or_else(|| Status::invalid_argument("the first chunk does not name its content"))?;
        let digest = self.check_content(&of)?;
        let whose = (TaskId::new(of.task), Attempt::new(of.attempt));
        self.desk.assignments.may_send(host, whose, of.bytes).map_err(refused_status)?;
        self.store_content(host, (digest, of.bytes), (chunks, first)).await
    }

    async fn get(
        &self,
        request: Request<v1::ContentRef>,
    ) -> Result<Response<Self::GetStream>, Status> {
        let (host, packed) = (self.host_of(&request)?, takes_packed(&request));
        let of = request.get_ref().clone();
        let digest = self.check_content(&of)?;
        let task = TaskId::new(of.task);
        let name = digest.to_hex();
        let is_input = self.desk.assignments.is_input(host, task, &name).map_err(refused_status)?;
        let turn = self.desk.transfers.take_turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let number = of.task;
        let open = move || {
            let may = is_input || contents.is_of_checkpoint(number, &digest)?;
            if may { contents.open_content(&digest).map(Some) } else { Ok(None) }
        };
        let Some(file) = self.desk.transfers.run_blocking(open).await? else {
            return Err(refused_status(format!(
                "{host} may not have the content {name}: it is neither an input of {task} nor in one of its checkpoints"
            )));
        };
        let contents = Arc::clone(self.desk.store.contents());
        let parcel = GivenContent { contents, digest, first: Some(of), hasher: Hasher::new() };
        let limits = (STALL, Deadline::begin());
        Ok(Response::new(self.desk.transfers.give_parcel(parcel, file, (turn, packed), limits)))
    }

    async fn get_inputs(
        &self,
        request: Request<v1::InputsRef>,
    ) -> Result<Response<Self::GetInputsStream>, Status> {
        let (host, packed) = (self.host_of(&request)?, takes_packed(&request));
        let of = request.into_inner();
        self.check_run(&of.run)?;
        let (asked, task) = (read_digests(&of.digests)?, TaskId::new(of.task));
        let inputs =
            self.desk.assignments.find_inputs(host, task, &asked).map_err(refused_status)?;
        let turn = self.desk.transfers.take_turn(host).await?;
        let reader = InputsReader::new(Arc::clone(self.desk.store.contents()), inputs);
        let (parcel, limits) = (GivenInputs { task: of.task }, (STALL, Deadline::begin()));
        Ok(Response::new(self.desk.transfers.give_parcel(parcel, reader, (turn, packed), limits)))
    }
}

impl ClientApi {
    fn check_content(&self, of: &v1::ContentRef) -> Result<Hash, Status> {
        self.check_run(&of.run)?;
        digest_of(&of.digest)
    }

    fn check_run(&self, run: &str) -> Result<(), Status> {
        match run == self.desk.run {
            true => Ok(()),
            false => {
                let why = format!("this is run {}, not {run}", self.desk.run);
                Err(Status::failed_precondition(why))
            }
        }
    }

    /// Stores a content that a host sends, whose first chunk has arrived.
    async fn store_content(
        &self,
        host: HostId,
        (digest, length): (Hash, u64),
        (mut chunks, first): (impl WorkerInbound<v1::ContentChunk>, v1::ContentChunk),
    ) -> Result<Response<v1::ContentReceipt>, Status> {
        let _turn = self.desk.transfers.take_turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let receive = move || contents.receive_content(digest, length);
        let mut incoming = self.desk.transfers.run_blocking(receive).await?;
        let (mut next, mut bytes, deadline) = (Some(first), 0, Deadline::begin());
        while let Some(sent) = next {
            let data = self.desk.transfers.unpack_chunk(sent).await?;
            bytes += data.len() as u64;
            let write = move || Ok(incoming.write(&data).map(|()| incoming));
            incoming = self.desk.transfers.run_blocking(write).await?.map_err(refusal_status)?;
            let left = deadline.left(bytes);
            if left.is_zero() {
                return Err(Status::deadline_exceeded(deadline.missed(bytes)));
            }
            next = next_chunk(&mut chunks, left.min(STALL)).await?;
        }
        let contents = Arc::clone(self.desk.store.contents());
        let finish = move || Ok(contents.finish_content(incoming));
        let bytes = self.desk.transfers.run_blocking(finish).await?.map_err(refusal_status)?;
        Ok(Response::new(v1::ContentReceipt { bytes }))
    }
}

/// Returns which of these contents aren't stored.
fn find_lacking(contents: &ContentPool, mut asked: Vec<Hash>) -> io::Result<Vec<Hash>> {
    let mut error = None;
    asked.retain(|digest| match contents.holds_content(digest) {
        Ok(here) => !here,
        Err(failed) => {
            error = Some(failed);
            true
        }
    });
    error.map_or(Ok(asked), Err)
}

fn refusal_status(refused: ContentRefusal) -> Status {
    match refused {
        ContentRefusal::Another { .. } => Status::invalid_argument(refused.to_string()),
        ContentRefusal::Io(error) => crate::storage::transfers::store_status(&error),
    }
}

/// A content that is being sent, and compared with its digest meanwhile; only the first chunk names it.
#[derive(Debug)]
struct GivenContent {
    contents: Arc<ContentPool>,
    digest: Hash,
    first: Option<v1::ContentRef>,
    hasher: Hasher,
}

impl ChunkSource for GivenContent {
    type Chunk = v1::ContentChunk;

    fn name(&self) -> String {
        format!("content {}", self.digest)
    }

    fn make_chunk(&mut self, data: Vec<u8>) -> v1::ContentChunk {
        self.hasher.update(&data);
        v1::ContentChunk { content: self.first.take(), data: data.into(), unpacked: 0 }
    }

    fn check_end(self) -> Result<(), Status> {
        if self.hasher.finalize() == self.digest {
            return Ok(());
        }
        let Self { contents, digest, .. } = self;
        let threads = contents.world().threads.clone();
        threads.begin_work(move || {
            if let Err(error) = contents.drop_damaged(&digest) {
                tracing::warn!(%digest, %error, "a damaged file of the store can't be removed");
            }
        });
        Err(Status::data_loss(format!("the content {digest} is damaged here")))
    }
}

/// Input files that are sent one after the other; no chunk names them.
#[derive(Debug)]
struct GivenInputs {
    task: u32,
}

impl ChunkSource for GivenInputs {
    type Chunk = v1::ContentChunk;

    fn name(&self) -> String {
        format!("inputs of task {}", self.task)
    }

    fn make_chunk(&mut self, data: Vec<u8>) -> v1::ContentChunk {
        v1::ContentChunk { data: data.into(), ..v1::ContentChunk::default() }
    }

    fn check_end(self) -> Result<(), Status> {
        Ok(())
    }
}
