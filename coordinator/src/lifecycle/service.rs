//! A live run from its start to its end: the actors beside its conductor, and the server.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use blake3::Hash;
use dormouse_identity::server_config;
use dormouse_log::LogWriter;
use dormouse_model::{ProgramAttemptEnd, Step};
use dormouse_proto::v1;
use dormouse_tasks::own::TaskProgram;
use ractor::{Actor, ActorRef};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tracing::Span;

use crate::conductor::{self, ConductorArgs, ConductorState};
use crate::contents::{ContentPool, LayOut};
use crate::identity::{self, RunIdentity, TlsConnection, TokenGuard, accept_connections};
use crate::lifecycle::stops::RunStops;
use crate::lifecycle::warden::{ActorWarden, WardenState};
use crate::log::journal::{Journal, JournalArgs, JournalMsg, OnceDurable as _};
use crate::messages::api_calls::DeskRequest;
use crate::messages::message::{ConductorMsg, SessionMsg};
use crate::observers::feed::EventFeed;
use crate::observers::observe::ObserveApi;
use crate::plan::ConductorPlan;
use crate::server::api::ClientApi;
use crate::server::desk::WorkerDesk;
use crate::server::refusals::RefusalLog;
use crate::sessions::lives::SessionRegistry;
use crate::sessions::outbound::SessionEnd;
use crate::status::progress::{PostedProgress, RunProgress};
use crate::status::vitals::CoordinatorVitals;
use crate::storage::assignments::AttemptAssignments;
use crate::storage::fetches::ActiveFetches;
use crate::storage::image_key;
use crate::storage::offsite::{OffsiteError, OffsiteStore};
use crate::storage::store::CheckpointFolder;
use crate::storage::transfers::StoreTransfers;
use crate::system::listener::ConnectionListener;
use crate::system::world::{BlockingThreads, CoordinatorWorld, WallClock};
use crate::{CoordinatorError, NEWS, REFUSED};

/// Name of the checkpoints' folder in the output folder.
const CHECKPOINTS: &str = "checkpoints";
/// Largest message that a worker may send, well above what an honest one sends.
const LARGEST_MESSAGE: usize = 4 << 20;
/// Most calls at once on a connection: a worker has its session, or the checkpoints that it sends and fetches.
const STREAMS: u32 = 128;
/// Bytes of one call that a peer may send ahead of the coordinator's reading.
const STREAM_WINDOW: u32 = 1 << 20;
/// Bytes of all calls of a connection that a peer may send ahead of the coordinator's reading. They are enough for the eight
/// checkpoints that a worker sends at a time, so that none waits while another is written to disk.
const CONNECTION_WINDOW: u32 = 8 * STREAM_WINDOW;
/// Time that the last writes, and the last goodbyes, may each take.
const ENDING: Duration = Duration::from_secs(10);

/// Properties of a run that the server needs.
#[derive(Debug)]
pub(crate) struct RunParticulars {
    pub(crate) experiment: String,
    /// Number of tasks and parallel jobs; `u32::MAX` for an open run.
    pub(crate) entries: u32,
    pub(crate) lost_after: Duration,
    pub(crate) listener: Box<dyn ConnectionListener>,
    pub(crate) address: SocketAddr,
    /// The authority and the accepted tokens.
    pub(crate) identity: RunIdentity,
    /// Clock for the validity of certificates.
    pub(crate) wall: WallClock,
    /// Validity of a certificate.
    pub(crate) certificates_valid: Duration,
    pub(crate) stops: RunStops,
    /// True if workers aren't told that the run is over while it can be resumed.
    pub(crate) workers_stay: bool,
    /// Requests of callers of the provider's API; `None`: the run has none.
    pub(crate) callers: Option<mpsc::UnboundedReceiver<DeskRequest>>,
}

/// Actors of a run beside its conductor.
#[derive(Debug)]
pub(crate) struct RunActors {
    pub(crate) warden: ActorRef<()>,
    pub(crate) journal: ActorRef<JournalMsg>,
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) assignments: Arc<AttemptAssignments>,
    vitals: CoordinatorVitals,
    /// Tracing span of the run.
    pub(crate) span: Span,
    pub(crate) lives: Arc<SessionRegistry>,
    pub(crate) board: watch::Sender<PostedProgress>,
    events: EventFeed,
    out: PathBuf,
    threads: BlockingThreads,
    finished: oneshot::Receiver<Box<ConductorState>>,
    failed: mpsc::UnboundedReceiver<CoordinatorError>,
    pub(crate) failing: mpsc::UnboundedSender<CoordinatorError>,
}

/// Passes the requests of callers of the provider's API to the conductor.
async fn pass_requests(
    mut requests: mpsc::UnboundedReceiver<DeskRequest>,
    conductor: ActorRef<ConductorMsg>,
) {
    while let Some(request) = requests.recv().await {
        // Dropped with a conductor that has ended, it is answered that the run is over.
        let _ = conductor.cast(ConductorMsg::Caller(request));
    }
}

fn broken_actor(error: &ractor::SpawnErr) -> CoordinatorError {
    CoordinatorError::Part { part: "coordinator's start", why: error.to_string() }
}

/// Stores an input file of tasks, which must be unchanged since the experiment was read.
fn take_in(contents: &ContentPool, digest: &str, file: &Path) -> Result<(), CoordinatorError> {
    let input = |why: String| CoordinatorError::Input { path: file.to_owned(), why };
    let taken = contents.take_in(file, "input").map_err(|error| input(error.to_string()))?;
    match taken.digest == digest {
        true => Ok(()),
        false => Err(input("it has changed since the experiment was read".to_owned())),
    }
}

/// Opens the object store of the run, if it has one, and stores the tasks' input files there.
async fn open_offsite(
    plan: &ConductorPlan,
    contents: &Arc<ContentPool>,
) -> Result<Option<Arc<OffsiteStore>>, CoordinatorError> {
    let CoordinatorWorld { objects, threads, .. } = &plan.world;
    let Some(objects) = objects else { return Ok(None) };
    let opened = OffsiteStore::open(Arc::clone(objects), &plan.run, threads.clone()).await;
    let offsite = opened.map_err(CoordinatorError::Objects)?;
    let own = plan.programs.iter().filter_map(TaskProgram::own);
    let inputs = own.flat_map(|program| &program.inputs);
    let inputs = inputs.filter_map(|input| Hash::from_hex(&input.digest).ok());
    let inputs = inputs.map(|digest| *digest.as_bytes()).collect();
    match offsite.keep_inputs(contents, inputs).await {
        Ok(()) => Ok(Some(offsite)),
        Err(OffsiteError::Object(error)) => Err(CoordinatorError::Objects(error)),
        Err(OffsiteError::Disk(error)) => Err(CoordinatorError::Output {
            path: contents.folder().to_owned(),
            source: io::Error::new(error.kind(), error.to_string()),
        }),
    }
}

impl RunActors {
    /// Starts the actors, with their files in the output folder; `durable` bytes of the log are durable.
    pub(crate) async fn start_actors(
        out: &Path,
        (plan, inputs): (&ConductorPlan, BTreeMap<String, PathBuf>),
        assignments: Arc<AttemptAssignments>,
        (writer, length): (LogWriter, u64),
        observer: Option<mpsc::UnboundedSender<Step>>,
        (vitals, span): (CoordinatorVitals, Span),
    ) -> Result<Self, CoordinatorError> {
        let root = out.join(CHECKPOINTS);
        let folder = out.join(ContentPool::FOLDER);
        let world = plan.world.clone();
        let threads = world.threads.clone();
        let opening = move || {
            let output = |source| CoordinatorError::Output { path: folder.clone(), source };
            let contents = ContentPool::open_in(&folder, world).map_err(output)?;
            inputs.iter().try_for_each(|(digest, file)| take_in(&contents, digest, file))?;
            Ok(contents)
        };
        let opened = threads.run(opening).await;
        let contents = opened.unwrap_or_else(|panic| {
            let why = panic.to_string();
            Err(CoordinatorError::Part { part: "coordinator's start", why })
        })?;
        let contents = Arc::new(contents);
        let offsite = open_offsite(plan, &contents).await?;
        let store = CheckpointFolder::open(&root, contents)
            .map_err(|source| CoordinatorError::Output { path: root.clone(), source })?
            .with_offsite(offsite);
        let (failing, failed) = mpsc::unbounded_channel();
        let (finish, finished) = oneshot::channel();
        let state = WardenState { finished: Some(finish), failed: failing.clone() };
        let (warden, _) =
            Actor::spawn(None, ActorWarden, state).await.map_err(|e| broken_actor(&e))?;
        let (durable, grows) = watch::channel(length);
        let events = EventFeed::new(out.join(dormouse_log::FILE), grows);
        let args = JournalArgs {
            writer,
            observer,
            durable,
            punctuality: Arc::clone(vitals.punctuality()),
            failed: failing.clone(),
            threads: threads.clone(),
            span: span.clone(),
        };
        let nothing = PostedProgress { progress: RunProgress::default(), at: Instant::now() };
        let (journal, _) = Actor::spawn_linked(None, Journal, args, warden.get_cell())
            .await
            .map_err(|e| broken_actor(&e))?;
        Ok(Self {
            warden,
            journal,
            store: Arc::new(store),
            assignments,
            vitals,
            span,
            lives: Arc::default(),
            board: watch::Sender::new(nothing),
            events,
            out: out.to_owned(),
            threads,
            finished,
            failed,
            failing,
        })
    }

    /// Writes the outputs of attempts that ended before the run was resumed, unless they are there.
    pub(crate) fn lay_out(&self, ends: Vec<ProgramAttemptEnd>) {
        for of in ends {
            let keeps = self.assignments.handed().hands_on(of.task);
            let contents = Arc::clone(self.store.contents());
            Box::new(LayOut { contents, of, keeps }).on_durable();
        }
    }

    /// Starts the conductor, and opens the desk for its workers, with this number of tasks and parallel jobs.
    pub(crate) async fn open(
        &self,
        args: ConductorArgs,
        entries: u32,
    ) -> Result<Arc<WorkerDesk>, CoordinatorError> {
        let (run, chance) = (args.plan.run.clone(), args.plan.world.chance.clone());
        let limits = args.plan.world.limits;
        let image_key = args.plan.image_key.clone();
        let exchange = args.plan.api.as_ref().map(|api| Arc::clone(&api.exchange));
        let conductor = conductor::thread::start_conductor(args).await?;
        Ok(Arc::new(WorkerDesk {
            run,
            tasks: entries,
            conductor,
            lives: Arc::clone(&self.lives),
            store: Arc::clone(&self.store),
            assignments: Arc::clone(&self.assignments),
            image_key,
            session_end: SessionEnd::default(),
            exchange,
            transfers: StoreTransfers::new(self.threads.clone(), limits),
            limits,
            fetches: ActiveFetches::default(),
            connections: AtomicU64::new(0),
            refusals: RefusalLog::default(),
            chance,
            span: self.span.clone(),
        }))
    }

    /// Conducts the run to its end.
    ///
    /// # Errors
    ///
    /// The run failed. Its workers were told to clean up.
    pub(crate) async fn conduct_run(
        mut self,
        args: ConductorArgs,
        particulars: RunParticulars,
    ) -> Result<ConductorState, CoordinatorError> {
        let _serving = self.vitals.begin_serving();
        let desk = self.open(args, particulars.entries).await?;
        let callers = particulars.callers.map(|requests| {
            let conductor = desk.conductor.clone();
            tokio::spawn(pass_requests(requests, conductor)).abort_handle()
        });
        let RunIdentity { authority, folder } = particulars.identity;
        let acceptor = TlsAcceptor::from(server_config(&authority)?);
        let guard = TokenGuard::new(folder, particulars.wall, particulars.certificates_valid);
        let api = ClientApi { authority, guard: guard.clone(), desk: Arc::clone(&desk) };
        let observe = ObserveApi {
            experiment: particulars.experiment,
            conductor: desk.conductor.clone(),
            board: self.board.subscribe(),
            events: self.events.clone(),
            guard: guard.clone(),
        };
        let (listener, lost_after) = (particulars.listener, particulars.lost_after);
        let incoming = accept_connections(listener, &guard, acceptor);
        let serving = serve_calls(incoming, (api, observe), lost_after, desk.session_end.clone());
        let server = tokio::spawn(serving);
        let server_ends = server.abort_handle();
        let watch = tokio::spawn(watch_server(server, particulars.address, self.failing.clone()));
        let (stops, workers_stay) = (particulars.stops, particulars.workers_stay);
        let outcome = self.await_outcome(&desk, stops, workers_stay).await;
        callers.iter().for_each(AbortHandle::abort);
        if tokio::time::timeout(ENDING, watch).await.is_err() {
            tracing::warn!("a connection did not end in time");
            server_ends.abort();
        }
        self.close(outcome?).await
    }

    /// Waits for the end of the run or until the user stops it, tells all workers, and ends the actors.
    pub(crate) async fn await_outcome(
        &mut self,
        desk: &WorkerDesk,
        stops: RunStops,
        workers_stay: bool,
    ) -> Result<ConductorState, CoordinatorError> {
        let conductor = desk.conductor.clone();
        let user = tokio::spawn(stops.tell_conductor(conductor));
        let outcome = self.last_state().await;
        user.abort();
        let goodbye = match &outcome {
            Ok(_) => Some("the run is over".to_owned()),
            Err(error) if workers_stay && error.can_be_gone_on_with() => None,
            Err(error @ CoordinatorError::Admission(_)) => Some(format!("{REFUSED}{error}")),
            Err(error) => Some(format!("the run was ended: {error}")),
        };
        desk.session_end.announce_end(goodbye.map(|why| v1::Goodbye { why, over: true }));
        // Before the log is free for another coordinator.
        let store = Arc::clone(&self.store);
        if self.threads.run(move || store.contents().end_life()).await.is_err() {
            tracing::warn!("transfers may still change the store of checkpoints");
        }
        // Their sessions end with the server; nothing on a worker depends on these actors.
        self.warden.get_cell().stop_children_and_wait(None, Some(ENDING)).await;
        let _ = self.warden.stop_and_wait(None, Some(ENDING)).await;
        outcome
    }

    /// Removes the files and objects that a run no longer needs once it is over.
    pub(crate) async fn close(
        &self,
        last: ConductorState,
    ) -> Result<ConductorState, CoordinatorError> {
        // What tasks left is in the run's folder before the contents go.
        self.store.contents().laid_out().await;
        // A run that is over needs none of them; one that broke may be resumed.
        if let Some(offsite) = self.store.offsite() {
            match tokio::time::timeout(ENDING, offsite.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "objects of this run are left in its checkpoint store; remove them there");
                }
                Err(_) => {
                    tracing::warn!(
                        "the checkpoint store has not removed this run's objects within {} s; remove what is left there",
                        ENDING.as_secs()
                    );
                }
            }
        }
        let (store, out) = (Arc::clone(&self.store), self.out.clone());
        let closed = self.threads.run(move || {
            let forgotten = store.close().and_then(|()| identity::forget_identity(&out));
            forgotten.and_then(|()| image_key::forget_secret(&out))
        });
        if let Ok(Err(error)) = closed.await {
            tracing::warn!(%error, "the checkpoints, or the identity, can't be removed");
        }
        Ok(last)
    }

    /// Kills all actors as if their process had been killed.
    pub(crate) fn kill_actors(&self, desk: &WorkerDesk) {
        desk.conductor.kill();
        self.journal.kill();
        self.lives.kill_sessions();
        self.warden.kill();
    }

    /// Waits for the end of the run, or of one of its actors.
    async fn last_state(&mut self) -> Result<ConductorState, CoordinatorError> {
        let lost = |why: &str| CoordinatorError::Part { part: "conductor", why: why.to_owned() };
        let last = tokio::select! {
            // An error that came first must not be outrun by the end it causes.
            biased;
            Some(error) = self.failed.recv() => return Err(error),
            last = &mut self.finished => last.map_err(|_| lost("it ended without a reason"))?,
        };
        // However long the disk stands still: a run is over once that is durable. Where it refuses, the journal says so.
        let mut flushed = std::pin::pin!(self.journal.call(JournalMsg::Flush, None));
        let mut is_late = std::pin::pin!(tokio::time::sleep(ENDING));
        loop {
            tokio::select! {
                biased;
                Some(error) = self.failed.recv() => return Err(error),
                flushed = &mut flushed => match flushed {
                    Ok(ractor::rpc::CallResult::Success(())) => break,
                    _ => return Err(CoordinatorError::Part {
                        part: "journal",
                        why: "it ended before the last steps were durable".to_owned(),
                    }),
                },
                () = &mut is_late, if !is_late.is_elapsed() => {
                    let seconds = ENDING.as_secs();
                    tracing::warn!(target: NEWS, "the disk has not taken the last steps of the run for {seconds} s: \
                        the run is over once it has");
                }
            }
        }
        // The last acknowledgements go before the goodbye.
        for session in last.open_sessions() {
            let _ = session.call(SessionMsg::Settle, Some(ENDING)).await;
        }
        Ok(*last)
    }
}

/// Serves calls until the end of all sessions is announced and every connection has got its goodbye.
async fn serve_calls(
    incoming: ReceiverStream<std::io::Result<TlsConnection>>,
    (api, observe): (ClientApi, ObserveApi),
    lost_after: Duration,
    session_end: SessionEnd,
) -> Result<(), tonic::transport::Error> {
    let api = Arc::new(api);
    let service = v1::coordinator_server::CoordinatorServer::from_arc(Arc::clone(&api))
        .max_decoding_message_size(LARGEST_MESSAGE);
    let networks = v1::instance_networks_server::InstanceNetworksServer::from_arc(Arc::clone(&api))
        .max_decoding_message_size(LARGEST_MESSAGE);
    let contents = v1::content_store_server::ContentStoreServer::from_arc(api)
        .max_decoding_message_size(LARGEST_MESSAGE);
    let observe = v1::observe_server::ObserveServer::new(observe);
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(lost_after / 2))
        .http2_keepalive_timeout(Some(lost_after))
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .add_service(service)
        .add_service(contents)
        .add_service(networks)
        .add_service(observe)
        .serve_with_incoming_shutdown(incoming, async move { session_end.wait_announced().await })
        .await
}

/// Ends the run if its server ends first.
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
