//! Random work: a bag of tasks, parallel jobs, requests of customers, or several of these, with the scheduler of each.

use std::sync::Arc;

use dormouse_cloud::{BurstableTerms, InstanceType, Market, ProviderTerms};
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{
    Bag, CheckpointConfig, JobPredecessors, Noise, Setup, Submission, Task, UsageInformation,
    VmRequest,
};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet, OnNotice};
use dormouse_units::{Bytes, Ppm, Span, TaskId, Time, Usage};

use super::cloud;
use super::schedulers::Schedulers;
use crate::draw::Draw;

/// The most processors of a machine for parallel jobs.
const PROCESSORS: u64 = 4;

/// The kinds of work in a run, and their size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) has_bag: bool,
    pub(super) has_jobs: bool,
    pub(super) has_customers: bool,
    /// Whether the schedulers are called by the protocol for programs.
    pub(super) are_programs: bool,
    /// Whether there are up to forty tasks and jobs, and not just six.
    pub(super) is_large: bool,
}

/// The work of a plan, as it was drawn.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) setup: Setup,
    pub(super) schedulers: Schedulers,
    pub(super) submissions: Vec<Submission>,
    pub(super) requests: Vec<(Time, VmRequest)>,
    pub(super) speedup: u32,
}

/// Draws the work of a run of these kinds.
pub(super) fn work(seed: u64, kinds: Kinds) -> Drawn {
    let (mut drawn, mut emulated_us) = match kinds.has_bag {
        true => bag(seed, kinds.is_large),
        false => (nothing(seed), 0),
    };
    drawn.schedulers.are_programs = kinds.are_programs;
    if kinds.has_jobs {
        emulated_us += jobs(seed, kinds.is_large, &mut drawn);
    }
    if kinds.has_customers {
        drawn.requests = requests(seed, &drawn.setup);
        drawn.setup.requests = true;
        drawn.schedulers.has_customers = true;
    }
    let mut draw = Draw::new(seed, "simulator: speed", 1);
    Drawn { speedup: speed(&mut draw, emulated_us), ..drawn }
}

/// The work of a run that has none yet, nor any instance types.
fn nothing(seed: u64) -> Drawn {
    let mut setup = Setup::of_jobs(1, UsageInformation::Exact, seed);
    setup.catalogue.types.clear();
    setup.jobs = None;
    Drawn {
        setup,
        schedulers: Schedulers::default(),
        submissions: Vec::new(),
        requests: Vec::new(),
        speedup: 1,
    }
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

/// Has some tasks be submitted later than the first, or follow others, if their scheduler can handle that.
fn order_tasks(draw: &mut Draw, name: BagSchedulerName, tasks: &mut [Task]) {
    if name.takes_later_tasks() && draw.one_in(2) {
        for task in &mut *tasks {
            task.submitted = Span::from_secs(if draw.one_in(2) { draw.between(1, 300) } else { 0 });
        }
    }
    if name.takes_workflows() && draw.one_in(3) {
        for (number, task) in (0_u32..).zip(tasks) {
            let before = (0..number).filter(|_| draw.one_in(3)).map(TaskId::new);
            task.after = before.take(3).collect();
        }
    }
}

/// Draws a bag and its cloud; returns them with the emulated microseconds that the bag takes.
fn bag(seed: u64, is_large: bool) -> (Drawn, u64) {
    // A bag that its scheduler can't plan is drawn again; the plainest scheduler plans everything.
    let planned = (0..20).map(|turn| drawn_bag(seed, turn, is_large, None));
    let can_plan = |drawn: &Drawn| drawn.schedulers.policies(&drawn.setup).is_ok();
    let drawn = planned.into_iter().find(can_plan);
    let drawn = drawn.unwrap_or_else(|| drawn_bag(seed, 0, is_large, Some(BagSchedulerName::Fifo)));
    let slowest = |task: &Task| task.runtime.values().max().map_or(0, |span| span.as_micros());
    let work: u64 = drawn.setup.bag.tasks.iter().map(slowest).sum();
    let boots = drawn.setup.catalogue.boot.as_micros() * 2;
    (drawn, work / 2 + boots)
}

fn drawn_bag(seed: u64, turn: u64, is_large: bool, name: Option<BagSchedulerName>) -> Drawn {
    let mut draw = Draw::new(seed ^ (turn << 48), "simulator: bag", 1);
    let name = name.unwrap_or_else(|| {
        draw.one(&[
            BagSchedulerName::BurstHads,
            BagSchedulerName::Hads,
            BagSchedulerName::IlsOnDemand,
            BagSchedulerName::LongestFirst,
            BagSchedulerName::BatchService,
            BagSchedulerName::Fifo,
            BagSchedulerName::Fifo,
            BagSchedulerName::Fifo,
        ])
    });
    let catalogue = cloud::catalogue(&mut draw);
    let kinds = ["a", "b", "burst"];
    let most = if is_large { 40 } else { 6 };
    let many = draw.between(1, most);
    let mut tasks: Vec<_> = (0..many).map(|n| task(&mut draw, n, &kinds)).collect();
    order_tasks(&mut draw, name, &mut tasks);
    let mut fleet = |kind: &InstanceType| {
        let spot = kind.spot.filter(|_| !draw.one_in(3));
        let bid = spot.and(kind.on_demand).filter(|_| draw.one_in(3));
        Fleet {
            kind: kind.name.clone(),
            market: if spot.is_some() { Market::Spot } else { Market::OnDemand },
            count: 1,
            bid: bid.map(|price| price.part(Ppm::new(600_000 + draw.below(600_000)))),
        }
    };
    let fleet = catalogue.types.values().map(&mut fleet).collect();
    let config = BagSchedulerConfig {
        fleet,
        max_iteration: 5,
        max_attempt: 5,
        retry_after: Span::from_secs(10),
        max_retries: 5,
        max_failures: 50,
        on_notice: if draw.one_in(2) { OnNotice::Leave } else { OnNotice::Checkpoint },
        ..BagSchedulerConfig::paper(name)
    };
    let longer = if is_large { 6 } else { 1 };
    let deadline = Span::from_secs(longer * draw.between(1_200, 3_600));
    let setup = Setup {
        seed,
        bag: Bag { tasks: tasks.into(), deadline },
        noise: draw.one_in(3).then_some(Noise::Lognormal(Ppm::new(100_000))),
        jobs: None,
        requests: false,
        checkpoint: cloud::checkpoint(&mut draw),
        interruptions: cloud::interruptions(&mut draw),
        preemption_notice: Span::from_secs(draw.between(0, 120)),
        terms: if draw.one_in(3) {
            ProviderTerms::default()
        } else {
            cloud::terms(&mut draw, &catalogue)
        },
        catalogue,
    };
    Drawn { setup, schedulers: Schedulers::of_bag(config), ..nothing(seed) }
}

/// Draws the speed-up, such that a run that takes `emulated_us` undisturbed is over in some seconds: faults then hit
/// the middle of a run, and many runs can be played.
fn speed(draw: &mut Draw, emulated_us: u64) -> u32 {
    let factor = emulated_us / (draw.between(2_000, 7_000) * 1_000);
    factor.clamp(10, 100) as u32
}

/// Adds parallel jobs on one machine; returns the emulated microseconds that they take.
fn jobs(seed: u64, is_large: bool, drawn: &mut Drawn) -> u64 {
    let mut draw = Draw::new(seed, "simulator: jobs", 1);
    let machine = draw.between(2, PROCESSORS) as u32;
    let algorithm =
        draw.one(&[Algorithm::Fcfs, Algorithm::Easy, Algorithm::Measy, Algorithm::Measy]);
    let many = draw.between(2, if is_large { 30 } else { 6 });
    let memory = draw.one_in(4).then(|| Bytes::new(draw.between(20, 400) * 1_000_000));
    let follow = draw.one_in(4);
    let mut submitted = 0;
    let submissions = (1..=many).map(|number| {
        submitted += draw.between(0, 40);
        let runtime = draw.between(20, 120);
        let after = (follow && number > 1 && draw.one_in(2)).then(|| {
            let jobs = vec![draw.between(1, number - 1)];
            Arc::new(JobPredecessors { jobs, think: Span::from_secs(draw.between(0, 30)) })
        });
        let each = memory.filter(|_| draw.one_in(2)).map(|most| Bytes::new(most.get() / 4));
        Submission {
            number,
            submitted: Time::from_secs(submitted),
            processes: 1 + draw.below(machine),
            runtime: Span::from_secs(runtime),
            estimate: Span::from_secs(runtime + draw.between(0, 60)),
            usage: Usage::Uniform(Ppm::new(100_000 * (3 + draw.below(8)))),
            memory: each.unwrap_or(Bytes::ZERO),
            priority: 0,
            after,
            is_cut: false,
            fails: false,
        }
    });
    let submissions: Vec<_> = submissions.collect();
    let checkpointed = draw.one_in(2).then(|| cloud::checkpoint(&mut draw));
    let checkpointed = checkpointed.filter(|it| *it != CheckpointConfig::NONE);
    // Experiments have no machine for parallel jobs in unlimited mode.
    let credits =
        draw.one_in(6).then(|| BurstableTerms { surplus: None, ..cloud::credits(&mut draw) });
    let simulation = JobSimulation {
        checkpoint: checkpointed,
        memory,
        burstable: credits,
        ..JobSimulation::new(Config::new(algorithm, machine), seed)
    };
    // The machine of a run of jobs alone is there at once.
    let setup = std::mem::replace(&mut drawn.setup, nothing(seed).setup);
    drawn.setup = simulation.setup_beside(setup);
    drawn.schedulers.jobs = Some(algorithm);
    drawn.submissions = submissions;
    let work: u64 = drawn.submissions.iter().map(|job| job.runtime.as_micros()).sum();
    submitted * 1_000_000 + work / 2
}

/// Draws requests of customers for VMs of the types in this setup.
fn requests(seed: u64, setup: &Setup) -> Vec<(Time, VmRequest)> {
    let mut draw = Draw::new(seed, "simulator: requests", 1);
    let sold: Vec<_> = setup
        .catalogue
        .types
        .values()
        .filter(|kind| !setup.is_two_tier(&kind.name))
        .flat_map(|kind| {
            let spot = kind.spot.map(|_| (&kind.name, Market::Spot));
            [Some((&kind.name, Market::OnDemand)), spot].into_iter().flatten()
        })
        .collect();
    let mut at = 0;
    let mut request = |_: u32| {
        at += draw.between(0, 200);
        let (kind, market) = draw.one(&sold);
        let duration = Span::from_secs(draw.between(10, 300));
        (Time::from_secs(at), VmRequest { kind: kind.clone(), market, duration })
    };
    (0..if sold.is_empty() { 0 } else { 5 }).map(&mut request).collect()
}
