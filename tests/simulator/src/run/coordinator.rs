//! The coordinator's process: its start, its restart after a death, and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{
    BlockingThreads, CoordinatorError, CoordinatorWorld, LiveRunPlan, RandomSource, RunObserver,
    WallClock, WorkerDesk,
};
use dormouse_log::HeaderText;
use dormouse_model::MetadataSettings;
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Ppm, Speedup, Time};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::disk::SimulatedDisk;
use crate::plan::{PHASE, Plan};

/// Microseconds since 1970 at the start of every run.
pub(super) const BEGINNING: u64 = 1_767_225_600_000_000;

/// Time for which a worker without tasks may leave a command unanswered: longer than any fault lasts.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(12);

/// The state of a coordinator's host, which outlives the coordinator.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) disk: SimulatedDisk,
    pub(super) since: Instant,
    /// What the wall clock showed at the start of the run, in microseconds; a jump of the clock changes this value.
    pub(super) wall: Arc<AtomicU64>,
    /// Microseconds that each operation on the disk takes.
    pub(super) slow: Arc<AtomicU64>,
}

/// The process of a coordinator, which starts up and then conducts its run.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) cancel: CancellationToken,
    pub(super) pause: CancellationToken,
    killed: CancellationToken,
    has_begun: Arc<AtomicBool>,
    ended: oneshot::Receiver<Result<(), CoordinatorError>>,
}

impl Process {
    /// Waits for the end of the process.
    pub(super) async fn ended(&mut self) -> Result<(), CoordinatorError> {
        let lost = |_| CoordinatorError::Part {
            part: "simulated process",
            why: "it ended without a reason".to_owned(),
        };
        (&mut self.ended).await.map_err(lost)?
    }

    /// Whether the process has started up and conducts its run.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Kills the process at once, whatever it is doing.
    pub(super) fn kill(self) {
        self.killed.cancel();
    }
}

/// Starts a coordinator of this generation; one after the first resumes the log that it finds. Its desk is given to
/// `serves` once it has started up.
pub(super) fn start(
    plan: &Plan,
    host: &Host,
    folder: &Path,
    generation: u64,
    serves: impl FnOnce(Arc<WorkerDesk>) + Send + 'static,
) -> Process {
    let (cancel, pause) = (CancellationToken::new(), CancellationToken::new());
    let world = CoordinatorWorld {
        disk: Arc::new(host.disk.mounted(generation)),
        wall: WallClock::Running { since: host.since, from: Arc::clone(&host.wall) },
        threads: BlockingThreads::InPlace {
            takes: Arc::clone(&host.slow),
            turns: RandomSource::seeded_stream(plan.seed ^ (generation << 40)),
        },
        chance: RandomSource::seeded_stream(plan.seed ^ (generation << 32)),
        objects: None,
        limits: plan.limits,
    };
    let live = live_run(plan, folder, generation > 1, world, (cancel.clone(), pause.clone()));
    let (killed, has_begun) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
    let (say, ended) = oneshot::channel();
    let process =
        Process { cancel, pause, killed: killed.clone(), has_begun: Arc::clone(&has_begun), ended };
    // Its end is waited for in one piece: what waits for it elsewhere is asked again and again.
    tokio::spawn(async move {
        let begun = tokio::select! {
            biased;
            () = killed.cancelled() => return,
            begun = async { live?.in_process().await } => begun,
        };
        let mut inner = match begun {
            Ok(inner) => inner,
            Err(error) => return drop(say.send(Err(error))),
        };
        has_begun.store(true, Ordering::Relaxed);
        serves(inner.worker_desk());
        let ended = tokio::select! {
            biased;
            () = killed.cancelled() => None,
            ended = inner.wait_end() => Some(ended.map(drop)),
        };
        match ended {
            Some(ended) => drop(say.send(ended)),
            None => inner.kill_actors(),
        }
    });
    process
}

fn live_run(
    plan: &Plan,
    folder: &Path,
    resume: bool,
    world: CoordinatorWorld,
    (cancel, pause): (CancellationToken, CancellationToken),
) -> Result<LiveRunPlan, CoordinatorError> {
    let setup = plan.setup.clone();
    let invalid = |why: String| CoordinatorError::Invalid { why };
    let policies = plan.schedulers.policies(&setup).map_err(|error| invalid(error.to_string()))?;
    let speedup = speedup(plan);
    let tasks = setup.bag.tasks.len();
    Ok(LiveRunPlan {
        demand: demand(plan),
        policies,
        submissions: plan.submissions.clone(),
        requests: plan.requests.clone(),
        open: plan.callers.is_some(),
        phase: PHASE,
        experiment: "simulated".to_owned(),
        header: header(plan).map_err(|error| invalid(error.to_string()))?,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        workers: u32::try_from(plan.workers.len()).unwrap_or(1),
        speedup,
        reserve: Ppm::new(100_000),
        share: None,
        inputs: Default::default(),
        programs: vec![TaskProgram::Kernel(vec!["vector".to_owned()]); tasks],
        spot_checks: Ppm::ZERO,
        certificates_valid: dormouse_coordinator::CERTIFICATE_VALID,
        metadata: MetadataSettings::default(),
        needs_criu: plan.needs_criu(),
        hold_checkpoints: true,
        noop: false,
        api: None,
        faults: plan.experiment_faults.clone(),
        out: folder.to_owned(),
        lost_after: Duration::from_millis(plan.lost_after),
        hold: Duration::from_millis(plan.hold),
        workers_stay: plan.workers_stay,
        answer_within: ANSWER_WITHIN,
        limit: Time::from_secs(1_000_000),
        observer: RunObserver::default(),
        cancel,
        pause,
        resume,
        world,
        setup,
    })
}

/// The first line of the run's log.
fn header(plan: &Plan) -> serde_json::Result<HeaderText> {
    HeaderText::new(&json!({
        "format": dormouse_log::FORMAT,
        "chain": "blake3",
        "experiment": "simulated",
        "seed": plan.seed,
    }))
}

/// The speed at which a plan is played.
pub(super) fn speedup(plan: &Plan) -> Speedup {
    Speedup::times_real(plan.speedup)
}

/// The most that the scheduler may want at once: its types' limits, or less if less is enough.
fn demand(plan: &Plan) -> RunDemand {
    let types = &plan.setup.catalogue.types;
    let vms = types.values().map(|kind| kind.vcpus).collect();
    RunDemand { vms, kinds: types.keys().cloned().collect(), ..RunDemand::default() }
}
