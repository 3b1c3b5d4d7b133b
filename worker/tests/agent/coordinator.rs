//! A coordinator for tests that does what a test tells it to, and records what it receives.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use dormouse_identity::{Authority, Role, TOKEN_KEY, Token, WorkerLife, server_config};
use dormouse_proto::v1::{
    CheckpointChunk, CheckpointReceipt, CheckpointRef, Command, Commands, FromWorker, Goodbye,
    Heartbeat, Hello, JoinReply, JoinRequest, Report, ToWorker, Welcome, command,
    coordinator_server::{Coordinator, CoordinatorServer},
    from_worker, report, to_worker,
};
use tokio::{
    runtime::Runtime,
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

const PATIENCE: Duration = Duration::from_secs(30);

/// An event that the service passes to the test.
enum Event {
    Joined(Hello, u64, mpsc::Sender<Result<ToWorker, Status>>),
    Said(FromWorker),
    Left,
}

#[derive(Default)]
struct Shared {
    checkpoints: Mutex<BTreeMap<(u32, u32), Vec<CheckpointChunk>>>,
    /// Whether requests for checkpoints, and checkpoints that are sent, get no answer.
    withheld: watch::Sender<bool>,
    /// Number of requests for a checkpoint.
    asked: AtomicUsize,
    /// Time for which certificates are valid, in seconds; 0: for ever.
    valid_s: AtomicU32,
    /// Number of certificates that were renewed.
    renewed: AtomicUsize,
    /// The receiver of a worker's events, by the worker's name.
    seats: Mutex<BTreeMap<String, mpsc::UnboundedSender<Event>>>,
}

struct Service(Arc<Shared>);

fn authority() -> &'static Authority {
    static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::generate().unwrap());
    &AUTHORITY
}

/// The token with which workers join the coordinators of these tests.
pub(crate) fn token() -> &'static Token {
    static TOKEN: LazyLock<Token> = LazyLock::new(|| {
        let day = Duration::from_secs(86_400);
        Token::generate(Role::Worker, authority().fingerprint(), day).unwrap()
    });
    &TOKEN
}

/// Accepts TLS connections and passes them on to a server without TLS.
async fn secure(outside: tokio::net::TcpListener, plain: SocketAddr) {
    let acceptor = TlsAcceptor::from(server_config(authority()).unwrap());
    while let Ok((stream, _)) = outside.accept().await {
        let _ = stream.set_nodelay(true);
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(mut near) = acceptor.accept(stream).await else { return };
            let Ok(mut far) = tokio::net::TcpStream::connect(plain).await else { return };
            let _ = far.set_nodelay(true);
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

#[tonic::async_trait]
impl Coordinator for Service {
    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinReply>, Status> {
        static INCARNATION: AtomicU64 = AtomicU64::new(1);
        let carried = request.metadata().get(TOKEN_KEY).map(|carried| carried.as_bytes().to_vec());
        let JoinRequest { worker, public_key, renews } = request.into_inner();
        let incarnation = if renews {
            self.0.renewed.fetch_add(1, Ordering::Relaxed);
            INCARNATION.load(Ordering::Relaxed) - 1
        } else {
            let carried = carried.unwrap();
            assert!(token().is(&carried), "a worker joins with the token that it was given");
            INCARNATION.fetch_add(1, Ordering::Relaxed)
        };
        let life = WorkerLife { run: run_name(), worker, incarnation };
        let certificate = authority().certify(&life, None, u64::MAX, &public_key).unwrap().into();
        Ok(Response::new(JoinReply {
            certificate,
            incarnation,
            valid_s: self.0.valid_s.load(Ordering::Relaxed),
        }))
    }

    type SessionStream = ReceiverStream<Result<ToWorker, Status>>;
    type GetCheckpointStream = ReceiverStream<Result<CheckpointChunk, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<FromWorker>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut from = request.into_inner();
        let first = from.message().await?.unwrap();
        let Some(from_worker::Body::Hello(hello)) = first.body else {
            return Err(Status::invalid_argument("no hello"));
        };
        let told = self.0.seats.lock().unwrap().get(&hello.worker).cloned();
        let told = told.ok_or_else(|| Status::not_found("nobody expects this worker"))?;
        let (to, stream) = mpsc::channel(64);
        let _ = told.send(Event::Joined(hello, first.ack, to));
        tokio::spawn(async move {
            while let Ok(Some(message)) = from.message().await {
                let _ = told.send(Event::Said(message));
            }
            let _ = told.send(Event::Left);
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn put_checkpoint(
        &self,
        request: Request<Streaming<CheckpointChunk>>,
    ) -> Result<Response<CheckpointReceipt>, Status> {
        let mut from = request.into_inner();
        let mut chunks = Vec::new();
        while let Some(chunk) = from.message().await? {
            chunks.push(chunk);
        }
        let which = chunks.first().and_then(|c| c.checkpoint.clone());
        let which = which.ok_or_else(|| Status::invalid_argument("whose?"))?;
        let bytes_of = |c: &CheckpointChunk| (c.data.len() as u64).max(c.unpacked.into());
        let bytes = chunks.iter().map(bytes_of).sum();
        self.0.checkpoints.lock().unwrap().insert((which.task, which.checkpoint), chunks);
        let _ = self.0.withheld.subscribe().wait_for(|withheld| !withheld).await;
        Ok(Response::new(CheckpointReceipt { bytes }))
    }

    async fn get_checkpoint(
        &self,
        request: Request<CheckpointRef>,
    ) -> Result<Response<Self::GetCheckpointStream>, Status> {
        let which = request.into_inner();
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        let found =
            self.0.checkpoints.lock().unwrap().get(&(which.task, which.checkpoint)).cloned();
        let mut withheld = self.0.withheld.subscribe();
        let (to, stream) = mpsc::channel(1);
        if found.is_none() && !*withheld.borrow() {
            return Err(Status::not_found("no such checkpoint"));
        }
        tokio::spawn(async move {
            let _ = withheld.wait_for(|withheld| !withheld).await;
            for chunk in found.unwrap_or_default() {
                let _ = to.send(Ok(chunk)).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// A test's coordinator, and the runtime on which it runs.
pub(crate) struct Fake {
    runtime: Runtime,
    shared: Arc<Shared>,
    pub(crate) address: SocketAddr,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let shared = Arc::new(Shared::default());
        let service = CoordinatorServer::new(Service(Arc::clone(&shared)));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let plain = listener.local_addr().unwrap();
        let outside = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = outside.local_addr().unwrap();
        runtime.spawn(secure(outside, plain));
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Self { runtime, shared, address }
    }

    /// Expects a worker of this name, which gets `welcome`.
    pub(crate) fn seat(&self, name: &str, welcome: Welcome) -> Seat<'_> {
        let (tell, events) = mpsc::unbounded_channel();
        self.shared.seats.lock().unwrap().insert(name.to_owned(), tell);
        Seat {
            fake: self,
            events,
            to: None,
            welcome,
            hello: None,
            commanded: Vec::new(),
            acked: 0,
            taken: 0,
            reports: Vec::new(),
        }
    }

    /// Damages the stored checkpoints of a task from number `from` on.
    pub(crate) fn damage(&self, task: u32, from: u32) {
        let mut checkpoints = self.shared.checkpoints.lock().unwrap();
        for (_, chunks) in checkpoints.range_mut((task, from)..=(task, u32::MAX)) {
            let last = chunks.last_mut().unwrap();
            let mut data = last.data.to_vec();
            *data.last_mut().unwrap() ^= 1;
            last.data = data.into();
        }
    }

    /// Sets whether requests for checkpoints, and checkpoints that are sent, get no answer.
    pub(crate) fn withhold(&self, withheld: bool) {
        self.shared.withheld.send_replace(withheld);
    }

    /// Number of requests for a checkpoint.
    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Makes certificates valid for this time from now on.
    pub(crate) fn certify_for(&self, seconds: u32) {
        self.shared.valid_s.store(seconds, Ordering::Relaxed);
    }

    /// Number of certificates that were renewed.
    pub(crate) fn renewed(&self) -> usize {
        self.shared.renewed.load(Ordering::Relaxed)
    }

    pub(crate) fn checkpoints(&self) -> Vec<(u32, u32)> {
        self.shared.checkpoints.lock().unwrap().keys().copied().collect()
    }
}

/// The coordinator's side of one worker.
pub(crate) struct Seat<'a> {
    fake: &'a Fake,
    events: mpsc::UnboundedReceiver<Event>,
    to: Option<mpsc::Sender<Result<ToWorker, Status>>>,
    welcome: Welcome,
    pub(crate) hello: Option<Hello>,
    commanded: Vec<Command>,
    /// Number of the last command that the worker has acknowledged.
    pub(crate) acked: u64,
    /// Number of reports received.
    pub(crate) taken: u64,
    reports: Vec<report::Report>,
}

/// The name of this test's run: it differs from that of tests beside it, whose tasks run as other users of this host.
pub(crate) fn run_name() -> String {
    format!("test-{}", std::process::id())
}

/// A welcome with a speed-up of 30, where a checkpoint stops its task for the modelled time.
pub(crate) fn welcome() -> Welcome {
    Welcome {
        run: run_name(),
        host: 0,
        emulated_us_per_second: 30_000_000,
        lost_after_ms: 3_000,
        protocol: dormouse_proto::PROTOCOLS.newest,
        hold_checkpoints: true,
        image_key: vec![7; 32].into(),
        ..Welcome::default()
    }
}

impl Seat<'_> {
    fn next(&mut self, what: &str) {
        let event =
            self.fake.runtime.block_on(async { timeout(PATIENCE, self.events.recv()).await });
        let event = event.unwrap_or_else(|_| panic!("no {what}; so far: {:#?}", self.reports));
        self.hear(event.unwrap());
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Joined(hello, ack, to) => {
                let known = self.hello.as_ref().is_some_and(|h| h.incarnation == hello.incarnation);
                if !known {
                    (self.taken, self.acked) = (0, 0);
                    self.commanded.clear();
                }
                self.hello = Some(hello);
                self.to = Some(to);
                self.send(to_worker::Body::Welcome(self.welcome.clone()));
                let again = self.commanded.get(usize::try_from(ack).unwrap()..).unwrap().to_vec();
                if !again.is_empty() {
                    self.send(to_worker::Body::Commands(Commands {
                        first: ack + 1,
                        commands: again,
                    }));
                }
            }
            Event::Said(message) => {
                self.acked = message.ack;
                match message.body {
                    Some(from_worker::Body::Reports(r)) => self.take(r.first, r.reports),
                    Some(from_worker::Body::Heartbeat(_)) => {
                        self.send(to_worker::Body::Heartbeat(Heartbeat {}));
                    }
                    _ => {}
                }
            }
            Event::Left => {}
        }
    }

    fn take(&mut self, first: u64, reports: Vec<Report>) {
        assert!(first <= self.taken + 1, "reports are missing");
        let known = usize::try_from(self.taken + 1 - first).unwrap();
        for report in reports.into_iter().skip(known) {
            self.taken += 1;
            self.reports.push(report.report.unwrap());
        }
        self.send(to_worker::Body::Heartbeat(Heartbeat {}));
    }

    fn send(&self, body: to_worker::Body) {
        if let Some(to) = &self.to {
            // A connection that is gone will come back.
            let _ = to.blocking_send(Ok(ToWorker { ack: self.taken, body: Some(body) }));
        }
    }

    /// Cuts the connection.
    pub(crate) fn cut(&mut self) {
        self.to = None;
    }

    /// Waits until the worker is connected again.
    pub(crate) fn back(&mut self) {
        while self.to.is_none() {
            self.next("hello");
        }
    }

    pub(crate) fn goodbye(&self, over: bool) {
        self.send(to_worker::Body::Goodbye(Goodbye { why: "the test is over".to_owned(), over }));
    }

    pub(crate) fn command(&mut self, command: command::Command) {
        self.commands(vec![command]);
    }

    pub(crate) fn commands(&mut self, commands: Vec<command::Command>) {
        let command = |c| Command { command: Some(c), ..Command::default() };
        self.send_all(commands.into_iter().map(command).collect());
    }

    /// Sends a command of an unknown kind.
    pub(crate) fn unknown_command(&mut self) {
        self.send_all(vec![Command::default()]);
    }

    fn send_all(&mut self, commands: Vec<Command>) {
        let first = self.commanded.len() as u64 + 1;
        self.commanded.extend(commands.clone());
        self.send(to_worker::Body::Commands(Commands { first, commands }));
    }

    /// Waits for the first unread report that `wanted` accepts, and removes it from the unread ones.
    pub(crate) fn expect<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&report::Report) -> Option<T>,
    ) -> T {
        let mut seen = 0;
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "no {what}; so far: {:#?}", self.reports);
            while let Some(report) = self.reports.get(seen) {
                if let Some(found) = wanted(report) {
                    self.reports.remove(seen);
                    return found;
                }
                seen += 1;
            }
            self.next(what);
        }
    }

    /// Waits until something is received; takes all unread reports, in order.
    pub(crate) fn take_all(&mut self) -> Vec<report::Report> {
        while self.reports.is_empty() {
            self.next("report");
        }
        while let Ok(event) = self.events.try_recv() {
            self.hear(event);
        }
        std::mem::take(&mut self.reports)
    }

    /// Receives reports for this much real time.
    pub(crate) fn listen(&mut self, span: Duration) {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let event =
                self.fake.runtime.block_on(async { timeout(left, self.events.recv()).await });
            if let Ok(Some(event)) = event {
                self.hear(event);
            }
        }
    }

    /// Waits until the worker has said hello.
    pub(crate) fn joined(&mut self) {
        while self.hello.is_none() {
            self.next("hello");
        }
    }

    pub(crate) fn ready(&mut self) -> Vec<u64> {
        self.expect("Ready", |r| match r {
            report::Report::Ready(ready) => Some(ready.real_repetition_us.clone()),
            _ => None,
        })
    }

    /// The unread reports.
    pub(crate) fn heard(&self) -> &[report::Report] {
        &self.reports
    }
}
