//! Running an agent from its start to its end.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use dormouse_proto::{
    CELLS, CGROUP_V1, CGROUP_V2, CRIU, FAULTS, JOB_CHECKPOINTS, JOB_CREDITS, JOB_MEMORY, METADATA,
    NO_JAIL, PARTIAL_JAIL, PROTOCOLS, SUPPLY, TIERS, TRAILS, v1::Hello,
};
use nix::sys::resource::{Resource, getrlimit};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use super::{
    AgentConfig, AgentError, PreparedWorker, Result, bounds,
    faults::WorkerNetwork,
    life::LifeEnd,
    live::{self, DialledCoordinator},
    memory,
    session::{self, DialTarget, GrpcTransport, WorkerCredentials},
};

/// Time limit for removing all processes, control groups and directories when the agent ends.
const CLEAN_UP: Duration = Duration::from_secs(10);
/// First pause before the worker joins the run again; later pauses are longer, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Number of threads for blocking work: starts, CRIU, transfers, freezes.
const BLOCKING: usize = 64;

/// How an agent ended in good order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// The agent ended because the run is over.
    Over {
        /// Reason that the coordinator gave for the end of the run.
        why: String,
    },
    /// The agent got SIGTERM or SIGINT.
    Terminated,
}

/// Works for the coordinator until the run is over or a signal arrives. When this returns, no process, control group or
/// task directory is left.
///
/// Blocks; starts its own threads.
///
/// # Errors
///
/// The coordinator can't be reached or was lost; a program can't be measured; something can't be cleaned up.
pub fn run(config: &AgentConfig, prepared: PreparedWorker) -> Result<AgentEnd> {
    let endpoint = parse_endpoint(&config.coordinator)?;
    if let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Err(why) = bounds::check_descriptors(limit)
    {
        tracing::warn!("{why}");
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING)
        .thread_name("agent")
        .enable_all()
        .build()
        .map_err(runtime_error("the agent's runtime"))?;
    let prepared = Arc::new(prepared);
    let outcome = live_repeatedly(config, &endpoint, &prepared, &runtime);
    // Threads that still wait for something wait for what is killed below.
    runtime.shutdown_background();
    let removed = prepared.tree.remove(CLEAN_UP);
    let outcome = outcome?;
    match removed {
        Ok(()) => Ok(outcome),
        Err(source) => Err(AgentError::Left { root: config.root.clone(), source }),
    }
}

/// Growing pauses between the sessions of a worker.
#[derive(Clone, Copy, Debug)]
pub struct RejoinPauses {
    next: Duration,
}

impl Default for RejoinPauses {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl RejoinPauses {
    /// Returns the pause after a session that lasted `lived`: the shortest pause after a long session, else twice the
    /// previous one.
    pub fn next_pause(&mut self, lived: Duration) -> Duration {
        let pause = if lived > LONGEST_PAUSE { FIRST_PAUSE } else { self.next };
        self.next = (2 * pause).min(LONGEST_PAUSE);
        pause
    }
}

/// Runs one session after the other until the run is over or a signal arrives.
fn live_repeatedly(
    config: &AgentConfig,
    endpoint: &Endpoint,
    prepared: &Arc<PreparedWorker>,
    runtime: &Runtime,
) -> Result<AgentEnd> {
    let mut signals = {
        let _inside = runtime.enter();
        AgentSignals::new()?
    };
    // What is wrong with it outlasts a life.
    let network = WorkerNetwork::default();
    let mut absences = RejoinPauses::default();
    let mut parent = config.parent;
    let mut is_known = false;
    loop {
        let born = Instant::now();
        // In a later life it has been welcomed before.
        let whom = (endpoint, &network, parent.take(), is_known);
        let end = one_life(config, whom, prepared, runtime, &mut signals)?;
        is_known = true;
        match end {
            LifeEnd::Over { why } => return Ok(AgentEnd::Over { why }),
            LifeEnd::Terminated => return Ok(AgentEnd::Terminated),
            LifeEnd::Refused { why } => {
                let address = config.coordinator.clone();
                return Err(AgentError::Refused { address, why });
            }
            LifeEnd::Rejoin { why } => {
                tracing::warn!(%why, "joining the run again");
                let pause = absences.next_pause(born.elapsed());
                let called =
                    runtime.block_on(async { timeout(pause, signals.wait_signal()).await });
                if called.is_ok() {
                    return Ok(AgentEnd::Terminated);
                }
            }
            LifeEnd::Lost { after, why } => {
                let address = config.coordinator.clone();
                return Err(AgentError::Lost { address, after, why });
            }
        }
    }
}

fn one_life(
    config: &AgentConfig,
    (endpoint, network, parent, is_known): (&Endpoint, &WorkerNetwork, Option<i32>, bool),
    prepared: &Arc<PreparedWorker>,
    runtime: &Runtime,
    signals: &mut AgentSignals,
) -> Result<LifeEnd> {
    let (report, reports) = mpsc::unbounded_channel();
    let (hear, heard) = mpsc::unbounded_channel();
    let credentials = WorkerCredentials::new(config.token.clone(), &config.root);
    let dial = DialTarget {
        transport: GrpcTransport {
            endpoint: endpoint.clone(),
            network: network.clone(),
            credentials: credentials.clone(),
        },
        hello: make_hello(config, prepared)?,
        is_known,
        patience: config.patience,
        hold: config.hold,
    };
    let dialled = DialledCoordinator {
        address: config.coordinator.clone(),
        endpoint: endpoint.clone(),
        network: network.clone(),
        credentials,
        parent,
    };
    let stop = CancellationToken::new();
    let session = {
        let stop = stop.clone();
        let own = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(runtime_error("the session's runtime"))?;
        thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || own.block_on(session::keep_session(dial, reports, hear, stop)))
            .map_err(runtime_error("the session's thread"))?
    };
    let end = runtime.block_on(live::live_until_end(prepared, &dialled, heard, report, signals));
    stop.cancel();
    // It panics only by a bug, which has been printed.
    let _ = session.join();
    end
}

fn make_hello(config: &AgentConfig, prepared: &PreparedWorker) -> Result<Hello> {
    let hierarchy = prepared.tree.hierarchy();
    let groups = if hierarchy.is_v2() { CGROUP_V2 } else { CGROUP_V1 };
    let criu = prepared.criu.iter().flat_map(|_| [CRIU, JOB_CHECKPOINTS]);
    let jail = match prepared.tree.jail() {
        None => Some(NO_JAIL),
        Some(jail) if !jail.lacking_parts().is_empty() || !hierarchy.counts_pids() => {
            Some(PARTIAL_JAIL)
        }
        Some(_) => None,
    };
    let all = [groups, TIERS, SUPPLY, FAULTS, JOB_MEMORY, JOB_CREDITS, METADATA, TRAILS];
    // The programs of an instance come from whoever may call the API: they run in a whole jail alone.
    let cells = jail.is_none().then_some(CELLS);
    let capabilities = all.into_iter().chain(cells).chain(criu).chain(jail);
    Ok(Hello {
        worker: config.name.clone(),
        // Drawn by the coordinator, when it joins.
        incarnation: 0,
        millicores: config.millicores,
        memory_bytes: memory::available_bytes(hierarchy).map_err(AgentError::Cgroup)?,
        newest_protocol: PROTOCOLS.newest,
        oldest_protocol: PROTOCOLS.oldest,
        capabilities: capabilities.map(str::to_owned).collect(),
    })
}

fn parse_endpoint(address: &str) -> Result<Endpoint> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|source| AgentError::Address { address: address.to_owned(), source })?;
    Ok(endpoint
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        // Without these a vanished peer goes unnoticed for hours.
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true))
}

fn runtime_error(what: &'static str) -> impl FnOnce(std::io::Error) -> AgentError {
    move |source| AgentError::Runtime { what, source }
}

/// Signals that end an agent.
pub(crate) struct AgentSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl AgentSignals {
    fn new() -> Result<Self> {
        let on = |kind| signal(kind).map_err(runtime_error("the signal handlers"));
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of the signals.
    pub(crate) async fn wait_signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
