//! The live run that is measured: VMs of one type, tasks whose lengths are drawn, and the scheduler `fifo`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dormouse_cloud::{Catalogue, InstanceType, Market, VmLimits};
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{LiveRunPlan, RunObserver};
use dormouse_model::{Bag, Setup, Task, TenantWork};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet};
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Bytes, RandomStream, Span, Speedup};

use crate::Result;
use crate::common::{KIND, live, setup};

/// Number of VMs of each worker.
pub(crate) const VMS: u32 = 25;
pub(crate) const VCPUS: u32 = 10;
/// Emulated seconds in each real one, as in the examples of the book.
const SPEEDUP: u32 = 30;
/// Length of the shortest task, real time: a task with less CPU time would be refused.
const LEAST: Duration = Duration::from_millis(100);
/// Longest time for the workers to join, and longest time until all VMs are full of tasks.
pub(crate) const RAMP: Duration = Duration::from_secs(60);
/// Time between the moment when all VMs are full of tasks and the beginning of the measurement.
pub(crate) const SETTLE: Duration = Duration::from_secs(5);

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Number of workers.
    pub(crate) workers: u32,
    /// Mean length of a task, real time.
    pub(crate) task: Duration,
}

impl Size {
    pub(crate) const fn new(workers: u32, task: Duration) -> Self {
        Self { workers, task }
    }

    /// Number of VMs of all workers.
    pub(crate) const fn vms(self) -> u32 {
        self.workers * VMS
    }

    /// Number of tasks that run at once.
    pub(crate) const fn running(self) -> u32 {
        self.vms() * VCPUS
    }

    /// Number of tasks that end in a second, once all vCPUs are busy.
    pub(crate) fn per_second(self) -> f64 {
        f64::from(self.running()) / self.task.as_secs_f64()
    }

    /// Makes the run in the folder `out`, with enough tasks for a measurement as long as `window`.
    pub(crate) fn run(self, window: Duration, out: &Path) -> Result<LiveRunPlan> {
        let lasts = RAMP / 2 + SETTLE + window;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some 100,000")]
        let later = (self.per_second() * lasts.as_secs_f64()) as u32;
        let (tasks, setup) = (self.running() + later, self.setup(self.running() + later));
        let config = BagSchedulerConfig {
            name: BagSchedulerName::Fifo,
            fleet: vec![Fleet {
                kind: KIND.into(),
                market: Market::OnDemand,
                count: self.vms(),
                bid: None,
            }],
            ..BagSchedulerConfig::default()
        };
        let (catalogue, bag) = (&setup.catalogue, &setup.bag);
        let policy = dormouse_policies::build(&config, catalogue, bag, &setup.checkpoint, 1)?;
        Ok(LiveRunPlan {
            setup,
            policies: vec![(TenantWork::All, policy)],
            workers: self.workers,
            speedup: Speedup::times_real(SPEEDUP),
            demand: RunDemand {
                vms: vec![VCPUS; self.vms() as usize],
                kinds: [KIND.into()].into(),
                ..RunDemand::default()
            },
            programs: vec![TaskProgram::Kernel(vec!["vector".to_owned()]); tasks as usize],
            noop: false,
            api: None,
            observer: RunObserver::default(),
            ..live(0, VCPUS, out)
        })
    }

    fn setup(self, tasks: u32) -> Setup {
        let base = setup(1, VCPUS);
        let kinds = base.catalogue.types.values().cloned().map(|kind| InstanceType {
            limits: VmLimits { spot: 0, on_demand: self.vms() },
            ..kind
        });
        let types = kinds.map(|kind| (kind.name.clone(), kind)).collect();
        let mut lengths = RandomStream::new(1, "length", 0);
        let speedup = Speedup::times_real(SPEEDUP);
        let (mean, least) = (speedup.to_emulated(self.task), speedup.to_emulated(LEAST));
        let tasks = (0..tasks).map(|_| Task {
            name: "t".to_owned(),
            memory: Bytes::new(1 << 20),
            // Without memory, so that as many end in each second from the beginning on.
            runtime: BTreeMap::from([(KIND.into(), lengths.draw_exponential(mean).max(least))]),
            submitted: Span::ZERO,
            after: Vec::new(),
        });
        let deadline = Span::from_secs(100_000_000);
        Setup {
            catalogue: Catalogue { types, ..base.catalogue },
            bag: Bag { tasks: tasks.collect::<Vec<_>>().into(), deadline },
            ..base
        }
    }
}
