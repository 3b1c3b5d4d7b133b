//! One live run from its particulars to its outcome.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dormouse_engine::{Counts, Run, Setup, Step};
use dormouse_policies::Scheduler;
use dormouse_proto::v1;
use dormouse_units::{Money, Ppm, Time};
use ractor::{Actor, ActorRef};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;

use crate::api::Api;
use crate::conductor::{Conductor, ConductorArgs, ConductorMsg, ConductorState};
use crate::journal::{Journal, JournalArgs, JournalMsg};
use crate::log::LogWriter;
use crate::outbound::Farewell;
use crate::restore::{Restored, restore};
use crate::session::SessionMsg;
use crate::store::Store;
use crate::warden::{Warden, WardenState};
use crate::{CoordinatorError, LiveFacts, Speedup};

/// The event log's name in the output folder.
const LOG: &str = "events.jsonl";
/// The checkpoint store's name in the output folder.
const CHECKPOINTS: &str = "checkpoints";
/// The largest message a worker may send; well above what an honest one sends.
const LARGEST_MESSAGE: usize = 4 << 20;
/// How long the last writes, and the last goodbyes, may take each.
const ENDING: Duration = Duration::from_secs(10);

/// The particulars of a live run.
#[derive(Debug)]
pub struct LiveRun {
    /// What the run is made of.
    pub setup: Setup,
    /// The policy under test.
    pub scheduler: Box<dyn Scheduler>,
    /// What people call it.
    pub experiment: String,
    /// The first line of the event log, a JSON object; the key `live` is added to it.
    pub header: Value,
    /// Where to listen; port 0 for any free one.
    pub listen: SocketAddr,
    /// How many workers to wait for.
    pub workers: u32,
    /// How much faster than real time it runs.
    pub speedup: Speedup,
    /// Most vCPUs that the scheduler may have busy at once.
    pub demand_vcpus: u32,
    /// Fraction of the hosts' cores kept for agents and CRIU.
    pub reserve: Ppm,
    /// Share of a core per vCPU; `None`: the largest that fits.
    pub share: Option<Ppm>,
    /// For each task the arguments of its program, without work, progress and result.
    pub programs: Vec<Vec<String>>,
    /// A checkpoint stands still for as long as modelled.
    pub hold_checkpoints: bool,
    /// Without processes, to measure dispatch.
    pub noop: bool,
    /// The output folder; made if it isn't there.
    pub out: PathBuf,
    /// After how much silence a worker is lost, real time.
    pub lost_after: Duration,
    /// When to end the run at the latest, emulated time.
    pub limit: Time,
    /// Who looks on.
    pub observer: Observer,
    /// Ends the run before its time.
    pub cancel: CancellationToken,
    /// Go on with the run whose log is in the output folder, if there is one.
    pub resume: bool,
}

/// Who looks on while a run goes.
#[derive(Debug, Default)]
pub struct Observer {
    /// Every step once it is durable, in order.
    pub steps: Option<mpsc::UnboundedSender<Step>>,
    /// How it goes, four times a second, and at the end.
    pub progress: Option<watch::Sender<Progress>>,
}

/// How a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Emulated time.
    pub now: Time,
    /// All workers were there, and it has begun.
    pub begun: bool,
    /// Tasks in all.
    pub tasks: u32,
    /// Tasks done and verified.
    pub completed: u32,
    /// Tasks on a VM.
    pub running: u32,
    /// VMs alive.
    pub vms: u32,
    /// Workers connected, or expected back.
    pub workers: u32,
    /// Workers it waits for before it begins.
    pub workers_wanted: u32,
    /// What is owed so far.
    pub cost: Money,
    /// How often what happened.
    pub counts: Counts,
    /// It is over.
    pub over: bool,
}

/// A run that listens, before its workers come.
#[derive(Debug)]
pub struct BoundRun {
    live: LiveRun,
    listener: TcpListener,
    address: SocketAddr,
}

/// The outcome of a live run.
#[derive(Debug)]
pub struct Conducted {
    /// The run at its end; cancelled runs say so.
    pub run: Run,
    /// What was measured.
    pub facts: LiveFacts,
    /// The event log.
    pub log: PathBuf,
}

/// What the conductor must know of a [`LiveRun`].
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Keeps checkpoints and workers of different runs apart.
    pub(crate) run: String,
    pub(crate) workers: u32,
    pub(crate) speedup: Speedup,
    pub(crate) demand_vcpus: u32,
    pub(crate) reserve: Ppm,
    pub(crate) share: Option<Ppm>,
    pub(crate) programs: Vec<Vec<String>>,
    pub(crate) hold_checkpoints: bool,
    pub(crate) noop: bool,
    pub(crate) lost_after: Duration,
    pub(crate) limit: Time,
    /// The different programs, and which of them each task is.
    distinct: Vec<Vec<String>>,
    program_of: Vec<usize>,
}

impl Plan {
    fn new(live: &LiveRun, run: String) -> Self {
        let (mut distinct, mut program_of) = (Vec::<Vec<String>>::new(), Vec::new());
        let measured = if live.noop { &[] } else { &live.programs[..] };
        for program in measured {
            let known = distinct.iter().position(|p| p == program);
            program_of.push(known.unwrap_or_else(|| {
                distinct.push(program.clone());
                distinct.len() - 1
            }));
        }
        Self {
            run,
            workers: live.workers,
            speedup: live.speedup,
            demand_vcpus: live.demand_vcpus,
            reserve: live.reserve,
            share: live.share,
            programs: live.programs.clone(),
            hold_checkpoints: live.hold_checkpoints,
            noop: live.noop,
            lost_after: live.lost_after,
            limit: live.limit,
            distinct,
            program_of,
        }
    }

    /// The programs every worker measures.
    pub(crate) fn to_measure(&self) -> Vec<v1::Program> {
        self.distinct.iter().map(|args| v1::Program { args: args.clone() }).collect()
    }

    /// What was measured of the programs, per task.
    pub(crate) fn per_task(&self, measured: &[u64]) -> Vec<u64> {
        let of = |&program: &usize| measured.get(program).copied().unwrap_or_default();
        self.program_of.iter().map(of).collect()
    }
}

impl LiveRun {
    /// Checks the particulars and listens, so that workers can be told where to dial.
    ///
    /// # Errors
    ///
    /// The particulars contradict each other, or the address can't be listened on.
    pub async fn bind(self) -> Result<BoundRun, CoordinatorError> {
        self.check()?;
        let addr = self.listen;
        let listen = |source| CoordinatorError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(BoundRun { live: self, listener, address })
    }

    /// [`Self::bind`] and [`BoundRun::conduct`].
    ///
    /// # Errors
    ///
    /// See there.
    pub async fn conduct(self) -> Result<Conducted, CoordinatorError> {
        self.bind().await?.conduct().await
    }

    fn check(&self) -> Result<(), CoordinatorError> {
        let (tasks, programs) = (self.setup.bag.tasks.len(), self.programs.len());
        let why = if !self.noop && tasks != programs {
            format!("there are {tasks} tasks, but programs for {programs}")
        } else if self.workers == 0 {
            "it needs at least one worker".to_owned()
        } else if self.demand_vcpus == 0 {
            "no vCPU may ever be busy: its demand must be at least 1".to_owned()
        } else if self.reserve >= Ppm::ONE {
            "the reserve must leave something of the hosts: it must be below 1".to_owned()
        } else if self.lost_after < Duration::from_millis(100) {
            format!("a worker silent for {:?} can't be lost: 100 ms is the least", self.lost_after)
        } else if !self.header.is_object() {
            "the header of its log must be a JSON object".to_owned()
        } else {
            return Ok(());
        };
        Err(CoordinatorError::Invalid { why })
    }
}

/// What a run begins with: nothing, or what its log holds.
struct Beginning {
    plan: Plan,
    writer: LogWriter,
    header: Option<Value>,
    restored: Restored,
}

/// The parts of a run under way.
struct Parts {
    warden: ActorRef<()>,
    journal: ActorRef<JournalMsg>,
    conductor: ActorRef<ConductorMsg>,
    store: Arc<Store>,
    finished: oneshot::Receiver<Box<ConductorState>>,
    failed: mpsc::UnboundedReceiver<CoordinatorError>,
    failing: mpsc::UnboundedSender<CoordinatorError>,
}

impl BoundRun {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Conducts the run to its end. Dropping the future does not end it: cancel its token.
    ///
    /// # Errors
    ///
    /// The run broke: see [`CoordinatorError`]. Its workers have been told to clean up.
    pub async fn conduct(self) -> Result<Conducted, CoordinatorError> {
        let Self { live, listener, address } = self;
        let (experiment, cancel) = (live.experiment.clone(), live.cancel.clone());
        let log = live.out.join(LOG);
        let tasks = u32::try_from(live.setup.bag.tasks.len()).unwrap_or(u32::MAX);
        let lost_after = live.lost_after;
        let (beginning, observer) = begin(live).await?;
        let run = beginning.plan.run.clone();
        let mut parts = start(beginning, observer, log.parent().unwrap_or(&log).into()).await?;
        let farewell = Farewell::default();
        let api = Api {
            run,
            experiment,
            tasks,
            lost_after,
            conductor: parts.conductor.clone(),
            store: Arc::clone(&parts.store),
            farewell: farewell.clone(),
            connections: AtomicU64::new(0),
        };
        let server = tokio::spawn(serve(listener, api, lost_after, farewell.clone()));
        let server_ends = server.abort_handle();
        let watch = tokio::spawn(watch_server(server, address, parts.failing.clone()));
        let canceller = tokio::spawn({
            let conductor = parts.conductor.clone();
            async move {
                cancel.cancelled().await;
                let why = "the user ended it".to_owned();
                let _ = conductor.cast(ConductorMsg::Cancel { why });
            }
        });
        let outcome = parts.outcome().await;
        canceller.abort();
        let why = match &outcome {
            Ok(_) => "the run is over".to_owned(),
            Err(error) => format!("the run was ended: {error}"),
        };
        farewell.say(v1::Goodbye { why, over: true });
        // Their sessions end with the server; nothing on a worker depends on these actors.
        parts.warden.get_cell().stop_children_and_wait(None, Some(ENDING)).await;
        let _ = parts.warden.stop_and_wait(None, Some(ENDING)).await;
        if tokio::time::timeout(ENDING, watch).await.is_err() {
            tracing::warn!("a connection did not end in time");
            server_ends.abort();
        }
        let (run, facts) = outcome?;
        // A run that is over needs none of them; one that broke may be resumed.
        let closed = tokio::task::spawn_blocking(move || parts.store.close()).await;
        if let Ok(Err(error)) = closed {
            tracing::warn!(%error, "the checkpoints can't be removed");
        }
        Ok(Conducted { run, facts, log })
    }
}

impl Parts {
    /// Waits for the end: of the run, or of a part of it.
    async fn outcome(&mut self) -> Result<(Run, LiveFacts), CoordinatorError> {
        let lost = |why: &str| CoordinatorError::Part { part: "conductor", why: why.to_owned() };
        let last = tokio::select! {
            // An error that came first must not be outrun by the end it causes.
            biased;
            Some(error) = self.failed.recv() => return Err(error),
            last = &mut self.finished => last.map_err(|_| lost("it ended without a word"))?,
        };
        let flushed = self.journal.call(JournalMsg::Flush, Some(ENDING));
        tokio::select! {
            biased;
            Some(error) = self.failed.recv() => return Err(error),
            flushed = flushed => match flushed {
                Ok(ractor::rpc::CallResult::Success(())) => {}
                _ => return Err(lost("the last steps could not be made durable in time")),
            }
        }
        // The last acknowledgements go before the goodbye.
        for session in last.sessions() {
            let _ = session.call(SessionMsg::Settle, Some(ENDING)).await;
        }
        Ok(last.into_outcome())
    }
}

/// Makes or reopens the log. Reading an old one blocks, so it is done aside.
async fn begin(live: LiveRun) -> Result<(Beginning, Observer), CoordinatorError> {
    let begun = tokio::task::spawn_blocking(move || {
        let output = |source| CoordinatorError::Output { path: live.out.clone(), source };
        std::fs::create_dir_all(&live.out).map_err(output)?;
        let path = live.out.join(LOG);
        let mut plan = Plan::new(&live, new_run_name(&live.experiment));
        let run = Run::new(live.setup, live.scheduler);
        let has_log = std::fs::metadata(&path).is_ok_and(|log| log.len() > 0);
        if !(live.resume && has_log) {
            let restored = Restored {
                run_name: String::new(),
                run,
                facts: LiveFacts::default(),
                hosts: Vec::new(),
                begun: false,
                last: Time::ZERO,
                good_bytes: 0,
            };
            let (writer, header) = (LogWriter::create(&path)?, Some(live.header));
            return Ok((Beginning { plan, writer, header, restored }, live.observer));
        }
        let restored = restore(&path, &live.header, live.speedup, run)?;
        if restored.hosts.is_empty() && restored.run.over().is_none() {
            // It never came to have hosts, so nothing was decided: it begins anew.
            let (writer, header) = (LogWriter::create(&path)?, Some(live.header));
            return Ok((Beginning { plan, writer, header, restored }, live.observer));
        }
        plan.run.clone_from(&restored.run_name);
        let writer = LogWriter::reopen(&path, restored.good_bytes)?;
        Ok((Beginning { plan, writer, header: None, restored }, live.observer))
    });
    begun.await.unwrap_or_else(|panic| {
        let why = panic.to_string();
        Err(CoordinatorError::Part { part: "conductor, replaying the log,", why })
    })
}

fn new_run_name(experiment: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{experiment}-{:x}-{:x}", since.as_nanos(), std::process::id())
}

async fn start(
    beginning: Beginning,
    observer: Observer,
    out: PathBuf,
) -> Result<Parts, CoordinatorError> {
    let Beginning { plan, writer, header, restored } = beginning;
    let root = out.join(CHECKPOINTS);
    let store = Store::open(&root)
        .map_err(|source| CoordinatorError::Output { path: root.clone(), source })?;
    let store = Arc::new(store);
    let (failing, failed) = mpsc::unbounded_channel();
    let (finish, finished) = oneshot::channel();
    let broken = |error: ractor::SpawnErr| CoordinatorError::Part {
        part: "coordinator's start",
        why: error.to_string(),
    };
    let state = WardenState { finished: Some(finish), failed: failing.clone() };
    let (warden, _) = Actor::spawn(None, Warden, state).await.map_err(broken)?;
    let args = JournalArgs { writer, observer: observer.steps, failed: failing.clone() };
    let (journal, _) =
        Actor::spawn_linked(None, Journal, args, warden.get_cell()).await.map_err(broken)?;
    let args = ConductorArgs {
        plan,
        run: restored.run,
        facts: restored.facts,
        last: restored.last,
        begun: restored.begun,
        header,
        hosts: restored.hosts,
        journal: journal.clone(),
        store: Arc::clone(&store),
        warden: warden.get_cell(),
        progress: observer.progress,
        failed: failing.clone(),
    };
    let (conductor, _) =
        Actor::spawn_linked(None, Conductor, args, warden.get_cell()).await.map_err(broken)?;
    Ok(Parts { warden, journal, conductor, store, finished, failed, failing })
}

/// Serves until the farewell, and then until every connection has heard it.
async fn serve(
    listener: TcpListener,
    api: Api,
    lost_after: Duration,
    farewell: Farewell,
) -> Result<(), tonic::transport::Error> {
    let service = v1::coordinator_server::CoordinatorServer::new(api)
        .max_decoding_message_size(LARGEST_MESSAGE);
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(lost_after / 2))
        .http2_keepalive_timeout(Some(lost_after))
        .add_service(service)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            async move { farewell.heard().await },
        )
        .await
}

/// A server that ends before the run does ends the run.
async fn watch_server(
    server: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
    addr: SocketAddr,
    failing: mpsc::UnboundedSender<CoordinatorError>,
) {
    let why = match server.await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(ended) if ended.is_cancelled() => return,
        Err(panic) => panic.to_string(),
    };
    let _ = failing.send(CoordinatorError::Server { addr, why });
}
