//! The calls of workers about contents.

use std::io;
use std::sync::Arc;

use blake3::{Hash, Hasher};
use dormouse_proto::{Deadline, v1};
use dormouse_units::{Attempt, HostId, TaskId};
use tonic::{Request, Response, Status, Streaming};

use crate::contents::{Contents, InputsReader, Refused, digest_of, digests};
use crate::protocol::given::Given;
use crate::server::api::{Api, takes_packed};
use crate::server::desk::{Inbound, chunk, refused};
use crate::storage::transfers::{Parcel, STALL};

#[tonic::async_trait]
impl v1::content_store_server::ContentStore for Api {
    type GetStream = Given<v1::ContentChunk>;
    type GetInputsStream = Given<v1::ContentChunk>;

    async fn lacks(
        &self,
        request: Request<v1::Contents>,
    ) -> Result<Response<v1::Contents>, Status> {
        let host = self.host_of(&request)?;
        let asked = digests(&request.get_ref().digests)?;
        let _turn = self.desk.transfers.turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let look = move || lacking(&contents, asked);
        let lacking = self.desk.transfers.blocking(look).await?;
        let digests = lacking.iter().map(|digest| digest.as_bytes().to_vec().into()).collect();
        Ok(Response::new(v1::Contents { digests }))
    }

    async fn put(
        &self,
        request: Request<Streaming<v1::ContentChunk>>,
    ) -> Result<Response<v1::ContentReceipt>, Status> {
        let host = self.host_of(&request)?;
        let mut chunks = request.into_inner();
        let first = chunk(&mut chunks, STALL).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("no chunk was received"))?;
        let of = first
            .content
            .clone()
            .ok_or_else(|| Status::invalid_argument("the first chunk does not name its content"))?;
        let digest = self.check_content(&of)?;
        let whose = (TaskId::new(of.task), Attempt::new(of.attempt));
        self.desk.assignments.may_send(host, whose, of.bytes).map_err(refused)?;
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
        let is_input = self.desk.assignments.is_input(host, task, &name).map_err(refused)?;
        let turn = self.desk.transfers.turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let number = of.task;
        let open = move || {
            let may = is_input || contents.is_of_checkpoint(number, &digest)?;
            if may { contents.open_content(&digest).map(Some) } else { Ok(None) }
        };
        let Some(file) = self.desk.transfers.blocking(open).await? else {
            return Err(refused(format!(
                "{host} may not have the content {name}: it is no input of {task} and in no checkpoint of it"
            )));
        };
        let contents = Arc::clone(self.desk.store.contents());
        let parcel = GivenContent { contents, digest, first: Some(of), hasher: Hasher::new() };
        let limits = (STALL, Deadline::begin());
        Ok(Response::new(self.desk.transfers.give(parcel, file, (turn, packed), limits)))
    }

    async fn get_inputs(
        &self,
        request: Request<v1::InputsRef>,
    ) -> Result<Response<Self::GetInputsStream>, Status> {
        let (host, packed) = (self.host_of(&request)?, takes_packed(&request));
        let of = request.into_inner();
        self.check_run(&of.run)?;
        let (asked, task) = (digests(&of.digests)?, TaskId::new(of.task));
        let inputs = self.desk.assignments.inputs(host, task, &asked).map_err(refused)?;
        let turn = self.desk.transfers.turn(host).await?;
        let reader = InputsReader::new(Arc::clone(self.desk.store.contents()), inputs);
        let (parcel, limits) = (GivenInputs { task: of.task }, (STALL, Deadline::begin()));
        Ok(Response::new(self.desk.transfers.give(parcel, reader, (turn, packed), limits)))
    }
}

impl Api {
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

    /// Stores a content that a host sends, of which the first chunk has come.
    async fn store_content(
        &self,
        host: HostId,
        (digest, length): (Hash, u64),
        (mut chunks, first): (impl Inbound<v1::ContentChunk>, v1::ContentChunk),
    ) -> Result<Response<v1::ContentReceipt>, Status> {
        let _turn = self.desk.transfers.turn(host).await?;
        let contents = Arc::clone(self.desk.store.contents());
        let receive = move || contents.receive(digest, length);
        let mut incoming = self.desk.transfers.blocking(receive).await?;
        let (mut next, mut bytes, deadline) = (Some(first), 0, Deadline::begin());
        while let Some(sent) = next {
            let data = self.desk.transfers.unpacked(sent).await?;
            bytes += data.len() as u64;
            let write = move || Ok(incoming.write(&data).map(|()| incoming));
            incoming = self.desk.transfers.blocking(write).await?.map_err(status)?;
            let left = deadline.left(bytes);
            if left.is_zero() {
                return Err(Status::deadline_exceeded(deadline.missed(bytes)));
            }
            next = chunk(&mut chunks, left.min(STALL)).await?;
        }
        let contents = Arc::clone(self.desk.store.contents());
        let finish = move || Ok(contents.finish(incoming));
        let bytes = self.desk.transfers.blocking(finish).await?.map_err(status)?;
        Ok(Response::new(v1::ContentReceipt { bytes }))
    }
}

/// The contents among these that are not here.
fn lacking(contents: &Contents, mut asked: Vec<Hash>) -> io::Result<Vec<Hash>> {
    let mut error = None;
    asked.retain(|digest| match contents.holds(digest) {
        Ok(here) => !here,
        Err(failed) => {
            error = Some(failed);
            true
        }
    });
    error.map_or(Ok(asked), Err)
}

fn status(refused: Refused) -> Status {
    match refused {
        Refused::Another { .. } => Status::invalid_argument(refused.to_string()),
        Refused::Io(error) => crate::storage::transfers::store_status(&error),
    }
}

/// A content that is given, and read for what it should be meanwhile; only the first chunk says which it is.
#[derive(Debug)]
struct GivenContent {
    contents: Arc<Contents>,
    digest: Hash,
    first: Option<v1::ContentRef>,
    hasher: Hasher,
}

impl Parcel for GivenContent {
    type Chunk = v1::ContentChunk;

    fn name(&self) -> String {
        format!("content {}", self.digest)
    }

    fn chunk(&mut self, data: Vec<u8>) -> v1::ContentChunk {
        self.hasher.update(&data);
        v1::ContentChunk { content: self.first.take(), data: data.into(), unpacked: 0 }
    }

    fn end(self) -> Result<(), Status> {
        if self.hasher.finalize() == self.digest {
            return Ok(());
        }
        let Self { contents, digest, .. } = self;
        let threads = contents.world().threads.clone();
        threads.begin(move || {
            if let Err(error) = contents.drop_damaged(&digest) {
                tracing::warn!(%digest, %error, "a damaged file of the store can't be removed");
            }
        });
        Err(Status::data_loss(format!("the content {digest} is damaged here")))
    }
}

/// Inputs that are given one after the other; no chunk says which they are.
#[derive(Debug)]
struct GivenInputs {
    task: u32,
}

impl Parcel for GivenInputs {
    type Chunk = v1::ContentChunk;

    fn name(&self) -> String {
        format!("inputs of task {}", self.task)
    }

    fn chunk(&mut self, data: Vec<u8>) -> v1::ContentChunk {
        v1::ContentChunk { data: data.into(), ..v1::ContentChunk::default() }
    }

    fn end(self) -> Result<(), Status> {
        Ok(())
    }
}
