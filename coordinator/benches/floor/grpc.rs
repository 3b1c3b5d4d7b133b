//! Lower bound of the cost of dispatching tasks: commands and reports over a bare gRPC stream without encryption, and a
//! line for each report that is durable before the next command is sent. There is no run, no scheduler, no identity and
//! no reconnect.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_proto::v1;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use v1::coordinator_client::CoordinatorClient;
use v1::coordinator_server::{Coordinator, CoordinatorServer};
use v1::{command, from_worker, report, to_worker};

type Answer<T> = Result<Response<T>, Status>;
type Failure = Box<dyn std::error::Error>;

/// Dispatches `tasks` tasks, `vcpus` at a time, to a worker that ends each at once, with a journal in `folder`; returns
/// the time from the first command to the last durable report.
pub(crate) async fn dispatch(tasks: u32, vcpus: u32, folder: &Path) -> Result<Duration, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (over, mut ended) = mpsc::channel(1);
    let floor = Floor { tasks, vcpus, journal: folder.join("floor"), over };
    let serving = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .add_service(CoordinatorServer::new(floor))
        .serve_with_incoming(TcpListenerStream::new(listener));
    let serving = tokio::spawn(serving);
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"))?;
    let channel = endpoint.tcp_nodelay(true).connect().await?;
    let working = tokio::spawn(work(CoordinatorClient::new(channel)));
    let took = ended.recv().await.ok_or("the floor ended early")?;
    working.abort();
    serving.abort();
    Ok(took?)
}

struct Floor {
    tasks: u32,
    vcpus: u32,
    journal: PathBuf,
    over: mpsc::Sender<io::Result<Duration>>,
}

#[tonic::async_trait]
impl Coordinator for Floor {
    type SessionStream = ReceiverStream<Result<v1::ToWorker, Status>>;
    type GetCheckpointStream = ReceiverStream<Result<v1::CheckpointChunk, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Answer<Self::SessionStream> {
        let (say, said) = mpsc::channel(8);
        let journal = File::create(&self.journal).map_err(|e| Status::internal(e.to_string()))?;
        let session = Session {
            tasks: self.tasks,
            next: 0,
            left: self.tasks,
            journal,
            heard: request.into_inner(),
            say,
        };
        let (vcpus, over) = (self.vcpus, self.over.clone());
        tokio::spawn(async move { over.send(session.conduct(vcpus).await).await });
        Ok(Response::new(ReceiverStream::new(said)))
    }

    async fn join(&self, _: Request<v1::JoinRequest>) -> Answer<v1::JoinReply> {
        Err(Status::unimplemented("nobody joins"))
    }

    async fn put_checkpoint(
        &self,
        _: Request<Streaming<v1::CheckpointChunk>>,
    ) -> Answer<v1::CheckpointReceipt> {
        Err(Status::unimplemented("there are none"))
    }

    async fn get_checkpoint(
        &self,
        _: Request<v1::CheckpointRef>,
    ) -> Answer<Self::GetCheckpointStream> {
        Err(Status::unimplemented("there are none"))
    }
}

struct Session {
    tasks: u32,
    next: u32,
    left: u32,
    journal: File,
    heard: Streaming<v1::FromWorker>,
    say: mpsc::Sender<Result<v1::ToWorker, Status>>,
}

impl Session {
    async fn conduct(mut self, vcpus: u32) -> io::Result<Duration> {
        let begun = Instant::now();
        self.start(vcpus).await;
        while self.left > 0 {
            let message = self.heard.message().await.map_err(io::Error::other)?;
            let Some(v1::FromWorker { body: Some(from_worker::Body::Reports(said)), .. }) = message
            else {
                return Err(io::Error::other("the worker says something else, or nothing"));
            };
            let (mut lines, mut ended) = (Vec::new(), 0);
            for (number, said) in (said.first..).zip(said.reports) {
                writeln!(lines, "{{\"number\":{number},\"report\":{:?}}}", said.report)?;
                ended += u32::from(matches!(said.report, Some(report::Report::TaskFinished(_))));
            }
            self.journal.write_all(&lines)?;
            self.journal.sync_data()?;
            self.left -= ended;
            self.start(ended).await;
        }
        Ok(begun.elapsed())
    }

    /// Starts `count` further tasks, or as many as are left.
    async fn start(&mut self, count: u32) {
        let tasks = self.next..self.tasks.min(self.next + count);
        let first = u64::from(self.next) + 1;
        self.next = tasks.end;
        let commands: Vec<_> = tasks.map(start).collect();
        if !commands.is_empty() {
            let body = Some(to_worker::Body::Commands(v1::Commands { first, commands }));
            // Who does not listen is seen by what is not heard.
            let _ = self.say.send(Ok(v1::ToWorker { ack: first, body })).await;
        }
    }
}

fn start(task: u32) -> v1::Command {
    let program = v1::Program { args: vec!["vector".to_owned()] };
    let start = v1::StartTask {
        task: Some(v1::TaskRef { vm: 1, task, attempt: 1 }),
        program: Some(program),
        memory_bytes: 1 << 20,
        emulated_runtime_us: 100_000_000,
        real_cpu_us: 3_000_000,
        ..v1::StartTask::default()
    };
    let command = Some(command::Command::StartTask(start));
    v1::Command { command, emulated_at_us: Some(u64::from(task)), real_late_us: 1 }
}

/// Plays a worker whose tasks start and end at once.
async fn work(mut client: CoordinatorClient<tonic::transport::Channel>) -> Result<(), Status> {
    let (say, said) = mpsc::channel(8);
    let mut heard = client.session(ReceiverStream::new(said)).await?.into_inner();
    let mut made = 0;
    while let Some(message) = heard.message().await? {
        let Some(to_worker::Body::Commands(commands)) = message.body else { continue };
        let reports: Vec<_> = commands.commands.into_iter().flat_map(obeyed).collect();
        let first = made + 1;
        made += reports.len() as u64;
        let body = Some(from_worker::Body::Reports(v1::Reports { first, reports }));
        if say.send(v1::FromWorker { ack: commands.first, body }).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn obeyed(command: v1::Command) -> Vec<v1::Report> {
    let Some(command::Command::StartTask(v1::StartTask { task, .. })) = command.command else {
        return Vec::new();
    };
    let started = v1::TaskStarted { task, real_took_us: 7, ..v1::TaskStarted::default() };
    let ended =
        v1::TaskFinished { task, verified: true, real_cpu_us: 11, ..v1::TaskFinished::default() };
    let said = [report::Report::TaskStarted(started), report::Report::TaskFinished(ended)];
    said.map(|report| v1::Report { report: Some(report) }).into()
}
