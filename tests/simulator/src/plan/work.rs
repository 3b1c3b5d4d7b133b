//! Drawn work: a bag of a few tasks or a few parallel jobs, and who schedules it.

use dormouse_cloud::{Market, ProviderTerms};
use dormouse_model::{
    Bag, CheckpointConfig, Noise, Setup, Submission, Task, TenantWork, UsageInformation,
};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config};
use dormouse_policies::{
    BagSchedulerConfig, BagSchedulerName, Fleet, OnNotice, PlanError, Policy, build,
};
use dormouse_units::{Bytes, Ppm, Span, Time, Usage};
use serde::{Deserialize, Serialize};

use super::cloud;
use crate::draw::Draw;

/// Who schedules a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// A scheduler of the tasks of a bag.
    Bag(Box<BagSchedulerConfig>),
    /// A scheduler of parallel jobs.
    Jobs(Algorithm),
}

/// The tenants of a run: the work of each and its policy.
type Policies = Vec<(TenantWork, Box<dyn Policy>)>;

impl Scheduler {
    /// The policies of a run of this setup.
    ///
    /// # Errors
    ///
    /// The scheduler can't plan the setup's bag.
    pub fn policies(&self, setup: &Setup) -> Result<Policies, PlanError> {
        let policy: Box<dyn Policy> = match self {
            Self::Bag(config) => {
                build(config, &setup.catalogue, &setup.bag, &setup.checkpoint, setup.seed)?
            }
            Self::Jobs(algorithm) => {
                let processors = setup.space_of_jobs().processors;
                let machine = setup.jobs.as_ref().map(|jobs| jobs.machine.clone());
                let machine = machine.unwrap_or_else(|| dormouse_model::MACHINE.into());
                Box::new(BatchScheduler::new(Config::new(*algorithm, processors), machine))
            }
        };
        Ok(vec![(TenantWork::All, policy)])
    }
}

/// Work that was drawn.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) setup: Setup,
    pub(super) scheduler: Scheduler,
    pub(super) submissions: Vec<Submission>,
    pub(super) speedup: u32,
}

fn task(draw: &mut Draw, number: u64, kinds: &[&str]) -> Task {
    let seconds = draw.between(40, 240);
    let runtime = kinds
        .iter()
        .map(|kind| ((*kind).into(), Span::from_micros(seconds * draw.between(80, 130) * 10_000)));
    let runtime = runtime.collect();
    Task {
        name: format!("t{number}"),
        memory: Bytes::new(draw.between(2, 40) * 1_000_000),
        runtime,
        submitted: Span::ZERO,
        after: Vec::new(),
    }
}

/// A bag of one to six tasks on a drawn cloud.
pub(super) fn bag(seed: u64) -> Drawn {
    // A bag that its scheduler can't plan is drawn again.
    (0..20).find_map(|turn| planned_bag(seed, turn)).unwrap_or_else(|| plain_bag(seed))
}

fn planned_bag(seed: u64, turn: u64) -> Option<Drawn> {
    let drawn = drawn_bag(seed, turn, None);
    drawn.scheduler.policies(&drawn.setup).is_ok().then_some(drawn)
}

/// The plainest scheduler plans everything.
fn plain_bag(seed: u64) -> Drawn {
    drawn_bag(seed, 0, Some(BagSchedulerName::Fifo))
}

fn drawn_bag(seed: u64, turn: u64, name: Option<BagSchedulerName>) -> Drawn {
    let mut draw = Draw::new(seed ^ (turn << 48), "simulator: bag", 1);
    let name = name.unwrap_or_else(|| {
        draw.one(&[
            BagSchedulerName::BurstHads,
            BagSchedulerName::Hads,
            BagSchedulerName::IlsOnDemand,
            BagSchedulerName::Fifo,
            BagSchedulerName::Fifo,
        ])
    });
    let catalogue = cloud::catalogue(&mut draw);
    let kinds = ["a", "b", "burst"];
    let tasks: Vec<_> = (0..draw.between(1, 6)).map(|n| task(&mut draw, n, &kinds)).collect();
    let fleet = catalogue.types.values().map(|kind| Fleet {
        kind: kind.name.clone(),
        market: match kind.spot {
            Some(_) if !draw.one_in(3) => Market::Spot,
            _ => Market::OnDemand,
        },
        count: 1,
        bid: None,
    });
    let config = BagSchedulerConfig {
        fleet: fleet.collect(),
        max_iteration: 5,
        max_attempt: 5,
        retry_after: Span::from_secs(10),
        max_retries: 5,
        max_failures: 50,
        on_notice: if draw.one_in(2) { OnNotice::Leave } else { OnNotice::Checkpoint },
        ..BagSchedulerConfig::paper(name)
    };
    let setup = Setup {
        seed,
        bag: Bag { tasks: tasks.into(), deadline: Span::from_secs(draw.between(1_200, 3_600)) },
        noise: draw.one_in(3).then_some(Noise::Lognormal(Ppm::new(100_000))),
        jobs: None,
        requests: false,
        checkpoint: cloud::checkpoint(&mut draw),
        interruptions: cloud::interruptions(&mut draw),
        preemption_notice: Span::from_secs(draw.between(0, 120)),
        terms: ProviderTerms::default(),
        catalogue,
    };
    let slowest = |task: &Task| task.runtime.values().max().map_or(0, |span| span.as_micros());
    let work: u64 = setup.bag.tasks.iter().map(slowest).sum();
    let boots = setup.catalogue.boot.as_micros() * 2;
    Drawn {
        speedup: speed(&mut draw, work / 2 + boots),
        setup,
        scheduler: Scheduler::Bag(Box::new(config)),
        submissions: Vec::new(),
    }
}

/// The speed-up, so that a run that takes so many of them undisturbed is over in some
/// seconds: what goes wrong does so in the middle of things, and many runs are played.
fn speed(draw: &mut Draw, emulated_us: u64) -> u32 {
    let factor = emulated_us / (draw.between(2_000, 7_000) * 1_000);
    factor.clamp(10, 100) as u32
}

/// Two to six parallel jobs on one machine.
pub(super) fn jobs(seed: u64) -> Drawn {
    let mut draw = Draw::new(seed, "simulator: jobs", 1);
    let machine = draw.between(2, 4) as u32;
    let algorithm = draw.one(&[Algorithm::Fcfs, Algorithm::Easy, Algorithm::Measy]);
    let many = draw.between(2, 6);
    let mut submitted = 0;
    let submissions = (1..=many).map(|number| {
        submitted += draw.between(0, 40);
        let runtime = draw.between(20, 120);
        Submission {
            number,
            submitted: Time::from_secs(submitted),
            processes: 1 + draw.below(machine),
            runtime: Span::from_secs(runtime),
            estimate: Span::from_secs(runtime + draw.between(0, 60)),
            usage: Usage::Uniform(Ppm::new(100_000 * (3 + draw.below(8)))),
            memory: Bytes::ZERO,
            after: None,
            is_cut: false,
            fails: false,
        }
    });
    let submissions: Vec<_> = submissions.collect();
    let checkpointed = draw.one_in(2).then(|| cloud::checkpoint(&mut draw));
    let checkpointed = checkpointed.filter(|it| *it != CheckpointConfig::NONE);
    let setup = Setup::of_jobs(machine, UsageInformation::Exact, seed);
    let work: u64 = submissions.iter().map(|job| job.runtime.as_micros()).sum();
    Drawn {
        speedup: speed(&mut draw, submitted * 1_000_000 + work / 2),
        setup: setup.checkpointing_jobs(checkpointed),
        scheduler: Scheduler::Jobs(algorithm),
        submissions,
    }
}
