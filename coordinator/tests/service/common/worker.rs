//! A running coordinator, and a fake worker that a test controls.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dormouse_coordinator::{CoordinatorError, LiveOutcome, LiveRunPlan};
use dormouse_identity::{Credential, Role, TOKEN_KEY, Token, WorkerKey, client_config};
use dormouse_proto::{Protocols, v1};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

/// Time that a test waits for anything before it fails with an explanation.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Address of a coordinator, and the folder with the tokens of its run.
#[derive(Clone, Debug)]
pub struct At {
    pub address: SocketAddr,
    pub folder: PathBuf,
}

impl At {
    /// Reads the token of a role.
    pub fn token(&self, role: Role) -> Token {
        std::fs::read_to_string(self.folder.join(role.file())).unwrap().parse().unwrap()
    }

    /// Opens a connection on which the coordinator has proved its identity; the client shows the certificate `shows`,
    /// if there is one.
    pub async fn channel(&self, shows: Option<&Credential>) -> tonic::transport::Channel {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", self.address));
        let config = client_config(self.token(Role::Worker).authority, shows).unwrap();
        dormouse_identity::channel(&endpoint.unwrap(), config).await.unwrap()
    }

    /// Joins with a token and with the certificate of an earlier session, if there are any.
    pub async fn join(
        &self,
        token: Option<&Token>,
        shows: Option<&Credential>,
        worker: &str,
    ) -> Result<(Credential, u64), tonic::Status> {
        let asked = v1::JoinRequest { worker: worker.to_owned(), ..v1::JoinRequest::default() };
        self.certified(asked, token, shows).await
    }

    /// Renews the certificate of a session.
    pub async fn renew(&self, shows: &Credential) -> Result<(Credential, u64), tonic::Status> {
        let asked = v1::JoinRequest { renews: true, ..v1::JoinRequest::default() };
        self.certified(asked, None, Some(shows)).await
    }

    async fn certified(
        &self,
        mut asked: v1::JoinRequest,
        token: Option<&Token>,
        shows: Option<&Credential>,
    ) -> Result<(Credential, u64), tonic::Status> {
        let key = WorkerKey::generate().unwrap();
        asked.public_key = key.public().into();
        let mut request = tonic::Request::new(asked);
        if let Some(token) = token {
            request.metadata_mut().insert(TOKEN_KEY, token.header().unwrap());
        }
        let channel = self.channel(shows).await;
        let mut client = v1::coordinator_client::CoordinatorClient::new(channel);
        let v1::JoinReply { certificate, incarnation, .. } =
            client.join(request).await?.into_inner();
        let authority = self.token(Role::Worker).authority;
        Ok((key.certified(certificate.to_vec(), authority), incarnation))
    }
}

/// Interceptor that adds the token to every call, if there is one.
#[derive(Clone, Debug)]
pub struct Says(pub Option<Token>);

impl tonic::service::Interceptor for Says {
    fn call(
        &mut self,
        mut request: tonic::Request<()>,
    ) -> Result<tonic::Request<()>, tonic::Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert(TOKEN_KEY, token.header().unwrap());
        }
        Ok(request)
    }
}

pub type Client = v1::coordinator_client::CoordinatorClient<
    tonic::service::interceptor::InterceptedService<tonic::transport::Channel, Says>,
>;

/// Makes a client that shows this certificate and sends this token, if there are any.
pub async fn client(at: &At, shows: Option<&Credential>, says: Option<Token>) -> Client {
    let channel = at.channel(shows).await;
    v1::coordinator_client::CoordinatorClient::with_interceptor(channel, Says(says))
}

/// A running coordinator.
pub struct Under {
    pub at: At,
    pub conducting: JoinHandle<Result<LiveOutcome, CoordinatorError>>,
    pub cancel: CancellationToken,
}

impl Under {
    pub async fn start(live: LiveRunPlan) -> Self {
        let cancel = live.cancel.clone();
        let folder = live.out.clone();
        let bound = live.bind_run().await.unwrap();
        let at = At { address: bound.address(), folder };
        Self { at, conducting: tokio::spawn(bound.conduct_run()), cancel }
    }

    pub async fn outcome(self) -> Result<LiveOutcome, CoordinatorError> {
        within("the run's end", self.conducting).await.unwrap()
    }
}

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let Ok(done) = tokio::time::timeout(PATIENCE, future).await else {
        panic!("{what} did not come within {PATIENCE:?}")
    };
    done
}

/// A worker's side of the protocol: numbers and resends messages as an honest worker does, unless a test decides
/// otherwise.
#[derive(Debug)]
pub struct FakeWorker {
    pub name: String,
    /// Credential from the worker's last join, perhaps of an earlier session.
    pub credential: Option<Credential>,
    /// Incarnation that the coordinator drew when the worker joined; zero: the worker hasn't joined.
    pub incarnation: u64,
    pub millicores: u32,
    /// Names of the worker's capabilities.
    pub capabilities: Vec<String>,
    pub protocols: Protocols,
    at: At,
    up: Option<mpsc::Sender<v1::FromWorker>>,
    down: Option<tonic::Streaming<v1::ToWorker>>,
    /// All reports that the worker has made, the first being number 1.
    pub reports: Vec<v1::Report>,
    /// Number of reports sent over the current connection or acknowledged before.
    sent: usize,
    /// Number of the last report that the coordinator has acknowledged.
    pub acked: u64,
    /// Number of commands that the worker has taken so far.
    pub taken: u64,
}

/// A message from the coordinator, or the end of the connection.
#[derive(Debug)]
pub enum Said {
    Welcome(v1::Welcome),
    /// New commands, without those that were received before.
    Commands(Vec<v1::command::Command>),
    Goodbye(v1::Goodbye),
    /// The connection has ended, without a goodbye.
    Ended(Option<tonic::Status>),
}

impl FakeWorker {
    pub fn new(name: &str, at: &At) -> Self {
        Self {
            name: name.to_owned(),
            credential: None,
            incarnation: 0,
            millicores: 2_000,
            capabilities: vec![dormouse_proto::TIERS.to_owned()],
            protocols: dormouse_proto::PROTOCOLS,
            at: at.clone(),
            up: None,
            down: None,
            reports: Vec::new(),
            sent: 0,
            acked: 0,
            taken: 0,
        }
    }

    /// Makes the same worker after a restart: it still has its credential.
    pub fn anew(&self) -> Self {
        Self { credential: self.credential.clone(), ..Self::new(&self.name, &self.at) }
    }

    /// Joins, unless the worker has joined; returns its credential.
    pub async fn certify(&mut self) -> Result<&Credential, tonic::Status> {
        if self.incarnation == 0 {
            let token = self.at.token(Role::Worker);
            let joined = self.at.join(Some(&token), self.credential.as_ref(), &self.name).await;
            let (credential, incarnation) = joined?;
            (self.credential, self.incarnation) = (Some(credential), incarnation);
        }
        Ok(self.credential.as_ref().unwrap())
    }

    /// Makes a client for this worker's checkpoints.
    pub async fn client(&self) -> Client {
        client(&self.at, self.credential.as_ref(), None).await
    }

    /// Stores a checkpoint of an attempt at a task, in the run of this welcome; returns the stored bytes.
    pub async fn store(
        &self,
        welcome: &v1::Welcome,
        (task, attempt): (u32, u32),
        checkpoint: u32,
    ) -> u64 {
        let of = v1::CheckpointRef { run: welcome.run.clone(), task, checkpoint, attempt };
        let chunks = super::checkpoint::chunks(welcome, &of, b"memory");
        let receipt = self.client().await.put_checkpoint(chunks).await.unwrap();
        receipt.into_inner().bytes
    }

    pub fn hello(&self) -> v1::Hello {
        v1::Hello {
            worker: self.name.clone(),
            incarnation: self.incarnation,
            millicores: self.millicores,
            memory_bytes: 1 << 40,
            newest_protocol: self.protocols.newest,
            oldest_protocol: self.protocols.oldest,
            capabilities: self.capabilities.clone(),
        }
    }

    /// Connects and sends the hello; reports that aren't acknowledged are sent again.
    pub async fn connect(&mut self) -> Result<(), tonic::Status> {
        self.certify().await?;
        let hello = v1::from_worker::Body::Hello(self.hello());
        self.open(v1::FromWorker { ack: self.taken, body: Some(hello) }).await?;
        self.sent = usize::try_from(self.acked).unwrap();
        self.flush().await;
        Ok(())
    }

    /// Connects and sends this first message.
    pub async fn open(&mut self, first: v1::FromWorker) -> Result<(), tonic::Status> {
        let (up, outgoing) = mpsc::channel(64);
        up.send(first).await.unwrap();
        self.certify().await?;
        let mut client = self.client().await;
        let down = within("a session", client.session(ReceiverStream::new(outgoing))).await?;
        self.down = Some(down.into_inner());
        self.up = Some(up);
        Ok(())
    }

    /// Drops the connection without a goodbye.
    pub fn disconnect(&mut self) {
        self.up = None;
        self.down = None;
    }

    /// Sends a message unchanged; only the coordinator's answers show whether it was accepted.
    pub async fn say(&mut self, body: v1::from_worker::Body) {
        let message = v1::FromWorker { ack: self.taken, body: Some(body) };
        self.say_raw(message).await;
    }

    pub async fn say_raw(&mut self, message: v1::FromWorker) {
        if let Some(up) = &self.up {
            let _ = up.send(message).await;
        }
    }

    pub async fn beat(&mut self) {
        self.say(v1::from_worker::Body::Heartbeat(v1::Heartbeat {})).await;
    }

    pub fn make(&mut self, report: v1::report::Report) {
        self.reports.push(v1::Report { report: Some(report) });
    }

    pub async fn flush(&mut self) {
        if self.sent < self.reports.len() {
            let first = self.sent as u64 + 1;
            let reports = self.reports[self.sent..].to_vec();
            self.sent = self.reports.len();
            self.say(v1::from_worker::Body::Reports(v1::Reports { first, reports })).await;
        }
    }

    pub async fn report(&mut self, report: v1::report::Report) {
        self.make(report);
        self.flush().await;
    }

    /// Returns the coordinator's next message that is not a heartbeat or bare acknowledgement.
    pub async fn hear(&mut self) -> Said {
        loop {
            if let Some(said) = self.hear_message().await {
                return said;
            }
        }
    }

    /// Returns the next message; `None` for a heartbeat, an acknowledgement or commands that were received before.
    pub async fn hear_message(&mut self) -> Option<Said> {
        use v1::to_worker::Body;
        let Some(down) = &mut self.down else { return Some(Said::Ended(None)) };
        let message = match within("a word of the coordinator", down.message()).await {
            Ok(Some(message)) => message,
            Ok(None) => return Some(Said::Ended(None)),
            Err(status) => return Some(Said::Ended(Some(status))),
        };
        self.acked = self.acked.max(message.ack);
        match message.body? {
            Body::Welcome(welcome) => Some(Said::Welcome(welcome)),
            Body::Goodbye(goodbye) => Some(Said::Goodbye(goodbye)),
            Body::Heartbeat(_) => None,
            Body::Commands(commands) => {
                assert!(commands.first <= self.taken + 1, "commands are missing");
                let known = usize::try_from(self.taken + 1 - commands.first).unwrap();
                let new: Vec<_> =
                    commands.commands.into_iter().skip(known).map(|c| c.command.unwrap()).collect();
                self.taken += new.len() as u64;
                (!new.is_empty()).then_some(Said::Commands(new))
            }
        }
    }

    pub async fn welcome(&mut self) -> v1::Welcome {
        match self.hear().await {
            Said::Welcome(welcome) => welcome,
            other => panic!("expected Welcome, got {other:?}"),
        }
    }

    pub async fn commands(&mut self) -> Vec<v1::command::Command> {
        match self.hear().await {
            Said::Commands(commands) => commands,
            other => panic!("expected commands, got {other:?}"),
        }
    }

    /// Returns the next `n` commands, however they are grouped into messages.
    pub async fn take(&mut self, n: usize) -> Vec<v1::command::Command> {
        let mut commands = Vec::new();
        while commands.len() < n {
            commands.extend(self.commands().await);
        }
        commands
    }

    /// Waits until the coordinator has acknowledged all reports of the worker.
    pub async fn on_record(&mut self) {
        while self.acked < self.reports.len() as u64 {
            let said = self.hear_message().await;
            assert!(said.is_none(), "expected an acknowledgement, got {said:?}");
        }
    }

    pub async fn goodbye(&mut self) -> v1::Goodbye {
        match self.hear().await {
            Said::Goodbye(goodbye) => goodbye,
            other => panic!("expected Goodbye, got {other:?}"),
        }
    }

    /// Connects and reports that the worker is ready; returns the welcome.
    pub async fn join(&mut self) -> v1::Welcome {
        self.connect().await.unwrap();
        let welcome = self.welcome().await;
        let real_repetition_us = vec![0; welcome.programs.len()];
        self.report(v1::report::Report::Ready(v1::Ready { real_repetition_us })).await;
        welcome
    }

    /// Joins under the name of a worker whose connection has broken, once the coordinator knows that.
    pub async fn take_over(&mut self) -> v1::Welcome {
        let there = async {
            while let Err(no) = self.connect().await {
                assert_eq!(no.code(), tonic::Code::AlreadyExists, "{no}");
            }
        };
        within("a former life's end", there).await;
        let welcome = self.welcome().await;
        let real_repetition_us = vec![0; welcome.programs.len()];
        self.report(v1::report::Report::Ready(v1::Ready { real_repetition_us })).await;
        welcome
    }

    /// Carries out all commands without delay, until a goodbye or the end of the connection; returns that.
    pub async fn obey(&mut self) -> Said {
        loop {
            match self.hear().await {
                Said::Commands(commands) => {
                    for command in commands {
                        self.carry_out(command);
                    }
                    self.flush().await;
                }
                Said::Welcome(_) => {}
                end => return end,
            }
        }
    }

    /// Carries out all commands without delay, until the run is over.
    pub async fn obey_to_the_end(&mut self) {
        let end = self.obey().await;
        assert!(matches!(end, Said::Goodbye(v1::Goodbye { over: true, .. })), "{end:?}");
    }

    /// Makes the reports of a command that is carried out at once.
    pub fn carry_out(&mut self, command: v1::command::Command) {
        use v1::command::Command as C;
        use v1::report::Report as R;
        match command {
            C::CreateVm(c) => self.make(R::VmCreated(v1::VmRef { vm: c.vm })),
            C::DestroyVm(c) => self.make(R::VmDestroyed(c)),
            C::FreezeVm(c) => self.make(R::VmFrozen(v1::VmTook { vm: c.vm, real_took_us: 7 })),
            C::ThawVm(c) => self.make(R::VmThawed(v1::VmTook { vm: c.vm, real_took_us: 7 })),
            C::StartTask(c) => {
                let task = c.task;
                let done_ppm = c.from.map_or(0, |kept| kept.done_ppm);
                let started =
                    v1::TaskStarted { task, done_ppm, real_took_us: 7, ..Default::default() };
                self.make(R::TaskStarted(started));
                let (job, result) = (c.plan.map(|_| v1::JobAccount::default()), answer(c.program));
                self.make(R::TaskFinished(v1::TaskFinished { job, result, ..end(task) }));
            }
            // Its tasks end as soon as they start: none is there to be promoted, moved or stopped.
            C::StopTask(_)
            | C::SetMode(_)
            | C::SetSupply(_)
            | C::Fault(_)
            | C::PromoteTask(_)
            | C::MoveTask(_)
            | C::CheckpointNow(_)
            | C::Announce(_)
            | C::SetNetwork(_) => {}
        }
    }
}

pub fn finished(vm: u32, task: u32, attempt: u32) -> v1::report::Report {
    v1::report::Report::TaskFinished(end(Some(v1::TaskRef { vm, task, attempt })))
}

/// Returns the right answer of a program, if it can be computed here.
pub fn answer(program: Option<v1::Program>) -> Option<String> {
    let answer = dormouse_tasks::answer::reckoned(&program?.args, 1)?;
    Some(serde_json::to_string(&answer).unwrap())
}

fn end(task: Option<v1::TaskRef>) -> v1::TaskFinished {
    v1::TaskFinished { task, verified: true, real_cpu_us: 11, ..v1::TaskFinished::default() }
}

/// Starts a run with one worker of this name, which joins; returns the coordinator, the worker and its welcome.
pub async fn joined(name: &str, live: LiveRunPlan) -> (Under, FakeWorker, v1::Welcome) {
    let coordinator = Under::start(live).await;
    let mut worker = FakeWorker::new(name, &coordinator.at);
    let welcome = worker.join().await;
    (coordinator, worker, welcome)
}

/// Starts a run with one worker of this name; returns the coordinator, the worker and the VM that the worker must
/// create.
pub async fn begun(name: &str, live: LiveRunPlan) -> (Under, FakeWorker, u32) {
    let (coordinator, mut worker, _) = joined(name, live).await;
    let vm = created(&worker.commands().await);
    (coordinator, worker, vm)
}

/// Returns the VM of the only command, which must create one.
pub fn created(commands: &[v1::command::Command]) -> u32 {
    match commands {
        [v1::command::Command::CreateVm(c)] => c.vm,
        other => panic!("expected one CreateVm, got {other:?}"),
    }
}

/// Returns the VM, task and attempt of the only command, which must start a task.
pub fn started(commands: &[v1::command::Command]) -> (u32, u32, u32) {
    match commands {
        [v1::command::Command::StartTask(c)] => {
            let v1::TaskRef { vm, task, attempt } = c.task.unwrap();
            (vm, task, attempt)
        }
        other => panic!("expected one StartTask, got {other:?}"),
    }
}

pub fn vm_created(vm: u32) -> v1::report::Report {
    v1::report::Report::VmCreated(v1::VmRef { vm })
}

/// Makes the report of a stored checkpoint of this many bytes.
pub fn checkpoint_taken(
    (vm, task, attempt): (u32, u32, u32),
    checkpoint: u32,
    bytes: u64,
) -> v1::report::Report {
    v1::report::Report::CheckpointTaken(v1::CheckpointTaken {
        task: Some(v1::TaskRef { vm, task, attempt }),
        checkpoint,
        done_ppm: 400_000 * checkpoint.min(2),
        bytes,
        // A gigabyte in a second.
        real_dump_us: bytes / 1_000,
        ..v1::CheckpointTaken::default()
    })
}

pub fn task_failed(vm: u32, task: u32, attempt: u32) -> v1::report::Report {
    let task = Some(v1::TaskRef { vm, task, attempt });
    v1::report::Report::TaskFailed(v1::TaskFailed { task, ..v1::TaskFailed::default() })
}

/// Makes the report that a task failed because its checkpoint couldn't be restored.
pub fn could_not_restore(vm: u32, task: u32, attempt: u32) -> v1::report::Report {
    let task = Some(v1::TaskRef { vm, task, attempt });
    let failed = v1::TaskFailed { task, could_not_restore: true, ..v1::TaskFailed::default() };
    v1::report::Report::TaskFailed(failed)
}

/// Starts a coordinator in a runtime of its own, so that it can be killed.
pub async fn start_apart(live: LiveRunPlan) -> (tokio::runtime::Runtime, Under) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let under = runtime.spawn(Under::start(live)).await.unwrap();
    (runtime, under)
}

/// Stops a coordinator's runtime as if its process had been killed: workers keep only the connection, and only the log
/// remains.
pub async fn kill(runtime: tokio::runtime::Runtime) {
    tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await.unwrap();
}
