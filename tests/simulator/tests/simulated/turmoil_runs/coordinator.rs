//! The coordinator's host: one process after the other, each of which resumes the log of the previous one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dormouse_cloud::{Catalogue, InstanceType, ProviderTerms, VmLimits};
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{
    BlockingThreads, CoordinatorWorld, LiveRunPlan, RandomSource, RunObserver, WallClock,
};
use dormouse_engine::Run;
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, MetadataSettings, Setup, Task,
    TenantWork,
};
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Bytes, Ppm, Price, Span, Speedup, Time};
use tokio_util::sync::CancellationToken;

use super::network::Listening;
use super::scenario::Scenario;
use super::spread::{KIND, Spread};
use super::witness::Witness;

/// How long a worker may be silent before it is lost.
const LOST_AFTER: Duration = Duration::from_secs(2);
/// How long a worker holds its VMs without a coordinator.
pub(crate) const HOLD: Duration = Duration::from_secs(20);
const FAR: u64 = 1_000_000;

/// A program whose answer can't be checked, since no answer is published for its input: workers without machines can't
/// compute one.
fn unchecked() -> TaskProgram {
    TaskProgram::Kernel("ed --class S --id 100".split(' ').map(str::to_owned).collect())
}

/// The settings that all coordinators of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Coordinators {
    scenario: Scenario,
    pub(crate) out: PathBuf,
    /// Number of coordinators started.
    pub(crate) lives: Arc<AtomicU64>,
    /// The wall clock, in microseconds since 1970.
    pub(crate) wall: Arc<AtomicU64>,
    witness: Witness,
}

impl Coordinators {
    pub(crate) fn new(scenario: &Scenario, out: &Path, witness: &Witness) -> Self {
        Self {
            scenario: scenario.clone(),
            out: out.to_owned(),
            lives: Arc::default(),
            wall: Arc::new(AtomicU64::new(1_700_000_000_000_000)),
            witness: witness.clone(),
        }
    }

    /// Runs one coordinator process to its end.
    pub(crate) async fn process(self) -> turmoil::Result {
        let life = self.lives.fetch_add(1, Ordering::Relaxed);
        let listener = Listening::begin().await?;
        let bound = self.live(life).bind_on(Box::new(listener)).await?;
        let done = bound.conduct_run().await?;
        self.witness.is_over(done);
        Ok(())
    }

    fn setup(&self) -> Setup {
        let kind = InstanceType {
            name: KIND.into(),
            vcpus: 1,
            memory: Bytes::new(1 << 30),
            disk: Bytes::ZERO,
            mflops: 1,
            on_demand: Some(Price::from_nanos_per_hour(1_000_000)),
            spot: None,
            limits: VmLimits { spot: 0, on_demand: 8 },
            burstable: None,
        };
        let task = Task {
            name: "t".to_owned(),
            memory: Bytes::new(1 << 20),
            runtime: BTreeMap::from([(KIND.into(), Span::from_secs(100))]),
            submitted: Span::ZERO,
            after: Vec::new(),
        };
        Setup {
            seed: self.scenario.seed,
            catalogue: Catalogue {
                types: BTreeMap::from([(KIND.into(), kind)]),
                boot: Span::ZERO,
                hibernation: Span::ZERO,
            },
            bag: Bag {
                tasks: vec![task; self.scenario.tasks].into(),
                deadline: Span::from_secs(FAR),
            },
            checkpoint: CheckpointConfig {
                scheme: CheckpointScheme::Budget(Ppm::ZERO),
                fixed: Span::ZERO,
                per_megabyte: Span::ZERO,
                on: CheckpointOn::All,
                ..CheckpointConfig::NONE
            },
            interruptions: Vec::new(),
            preemption_notice: Span::ZERO,
            terms: ProviderTerms::default(),
            noise: None,
            jobs: None,
            requests: false,
        }
    }

    fn policy(&self) -> Box<Spread> {
        Box::new(Spread::new(self.scenario.tasks, self.scenario.workers))
    }

    /// The run in its state before anything happened.
    pub(crate) fn run_again(&self) -> Run {
        Run::new(self.setup(), self.policy())
    }

    fn live(&self, life: u64) -> LiveRunPlan {
        let Scenario { seed, tasks, workers, disk_us, .. } = self.scenario;
        LiveRunPlan {
            setup: self.setup(),
            policies: vec![(TenantWork::All, self.policy())],
            submissions: Vec::new(),
            requests: Vec::new(),
            open: false,
            phase: Duration::from_millis(100),
            experiment: "turmoil".to_owned(),
            header: dormouse_log::HeaderText::new(
                &serde_json::json!({"format": dormouse_log::FORMAT, "experiment": "turmoil"}),
            )
            .expect("it is JSON"),
            listen: SocketAddr::from(([0, 0, 0, 0], 0)),
            workers: u32::try_from(workers).unwrap(),
            speedup: Speedup::times_real(30),
            demand: RunDemand {
                vms: vec![1; workers],
                kinds: [KIND.into()].into(),
                ..RunDemand::default()
            },
            reserve: Ppm::new(250_000),
            share: None,
            inputs: BTreeMap::new(),
            programs: vec![unchecked(); tasks],
            spot_checks: Ppm::ZERO,
            certificates_valid: dormouse_coordinator::CERTIFICATE_VALID,
            metadata: MetadataSettings::default(),
            needs_criu: false,
            hold_checkpoints: false,
            noop: true,
            api: None,
            faults: Vec::new(),
            out: self.out.clone(),
            lost_after: LOST_AFTER,
            hold: HOLD,
            workers_stay: false,
            answer_within: dormouse_coordinator::ANSWER_WITHIN,
            limit: Time::from_secs(FAR),
            observer: RunObserver::default(),
            cancel: CancellationToken::new(),
            pause: CancellationToken::new(),
            resume: life > 0,
            world: CoordinatorWorld {
                wall: WallClock::Shown(Arc::clone(&self.wall)),
                threads: BlockingThreads::InPlace {
                    takes: Arc::new(AtomicU64::new(disk_us)),
                    turns: RandomSource::seeded_stream(seed),
                },
                // No life draws what another has drawn.
                chance: RandomSource::seeded_stream(seed.wrapping_mul(1_000) + life),
                ..CoordinatorWorld::default()
            },
        }
    }
}
