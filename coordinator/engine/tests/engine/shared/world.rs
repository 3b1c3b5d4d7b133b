//! The experiment that the tests of shared runs vary, and runs of it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use dormouse_cloud::{Catalogue, InstanceType, Market, ProviderTerms, ResourceVector, VmLimits};
use dormouse_engine::Run;
use dormouse_engine::drive::{ModelledMachines, PlayError, TwoTierLaw, beginning_events, play_run};
use dormouse_model::{
    Bag, CheckpointConfig, Event, Notice, Setup, Step, Submission, Task, TenantWork,
    UsageInformation,
};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet, Policy, build};
use dormouse_units::{Bytes, Ppm, Price, RandomStream, Span, TaskId, Time, Usage};

/// Number of processors of the jobs' machine.
pub(crate) const PROCESSORS: u32 = 8;

/// The one type of the catalogue: two vCPUs.
pub(crate) const KIND: &str = "small";

/// Makes a setup with a bag of tasks of these run times in s, on the only type, which boots for `boot` and of which the
/// cloud has five VMs in each market.
pub(crate) fn setup(seed: u64, runtimes: impl IntoIterator<Item = u64>, boot: Span) -> Setup {
    let kind = InstanceType {
        name: KIND.into(),
        vcpus: 2,
        memory: Bytes::new(100),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(9_600_000)),
        spot: Some(Price::from_nanos_per_hour(3_600_000)),
        limits: VmLimits { spot: 5, on_demand: 5 },
        burstable: None,
    };
    let task = |(n, runtime)| Task {
        name: format!("t{n}"),
        memory: Bytes::new(10),
        runtime: BTreeMap::from([(KIND.into(), Span::from_secs(runtime))]),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Setup {
        seed,
        bag: Bag {
            tasks: runtimes.into_iter().enumerate().map(task).collect(),
            deadline: Span::from_secs(10_000),
        },
        catalogue: Catalogue {
            types: [(kind.name.clone(), kind)].into(),
            boot,
            hibernation: Span::from_secs(30),
        },
        noise: None,
        jobs: None,
        requests: false,
        checkpoint: CheckpointConfig::NONE,
        interruptions: Vec::new(),
        preemption_notice: Span::from_secs(120),
        terms: ProviderTerms::default(),
    }
}

/// Makes the bag's scheduler of this name, with this many VMs of each type and market.
pub(crate) fn bag_policy(
    setup: &Setup,
    name: BagSchedulerName,
    fleet: &[(&str, Market, u32)],
) -> Box<dyn Policy> {
    let fleet = fleet.iter().map(|&(kind, market, count)| Fleet {
        kind: kind.into(),
        market,
        count,
        bid: None,
    });
    let config = BagSchedulerConfig { name, fleet: fleet.collect(), ..Default::default() };
    build(&config, &setup.catalogue, &setup.bag, &setup.checkpoint, setup.seed).expect("a policy")
}

/// Makes the policy MEASY for a machine of [`PROCESSORS`] processors.
pub(crate) fn jobs_policy() -> Box<dyn Policy> {
    let config = Config::new(Algorithm::Measy, PROCESSORS);
    Box::new(BatchScheduler::new(config, "processors".into()))
}

/// Makes a run of these tenants, in the given order.
pub(crate) fn shared(setup: &Setup, policies: Vec<(TenantWork, Box<dyn Policy>)>) -> Run {
    let both = setup.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
    Run::of_tenants(both, policies)
}

/// A job: submission time in s, processes, run time in s, and percent of a processor that each process uses.
pub(crate) type Job = (u64, u32, u64, u32);

/// Draws jobs by a seed, with any CPU usage.
pub(crate) fn drawn(seed: u64, count: usize) -> Vec<Job> {
    let (mut chance, mut at) = (RandomStream::new(seed, "jobs", 0), 0);
    let mut draw = |_| {
        at += chance.draw_below(60) as u64;
        let processes = 1 + chance.draw_below(PROCESSORS as usize) as u32;
        (at, processes, 1 + chance.draw_below(200) as u64, 10 + chance.draw_below(91) as u32)
    };
    (0..count).map(&mut draw).collect()
}

/// Makes the submissions of these jobs; the first job is the task `first`.
pub(crate) fn submissions(first: u32, jobs: &[Job]) -> Vec<(Time, Event)> {
    let submitted = |(number, &(at, processes, runtime, percent)): (u32, &Job)| {
        let job = Submission {
            number: u64::from(number),
            submitted: Time::from_secs(at),
            processes,
            runtime: Span::from_secs(runtime),
            estimate: Span::from_secs(2 * runtime),
            usage: Usage::Uniform(Ppm::new(percent * 10_000)),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        let task = TaskId::new(first + number);
        (Time::from_secs(at), Event::Submitted { task, key: None, job: Arc::new(job) })
    };
    let mut all: Vec<_> = (0..).zip(jobs).map(submitted).collect();
    all.push((jobs.last().map_or(Time::ZERO, |job| Time::from_secs(job.0)), Event::AllSubmitted));
    all
}

/// A played run, its steps, and how it ended.
pub(crate) type Played = (Run, Vec<Step>, Result<(), PlayError<Infallible>>);

/// Plays a run on one host, where the two VMs of a processor share it as `sharing` says.
pub(crate) fn played(
    mut run: Run,
    host: ResourceVector,
    submissions: Vec<(Time, Event)>,
    sharing: dormouse_vm::ProcessorSharing,
) -> Played {
    let (migration_cost, seed) = (Span::from_secs(20), run.setup().seed);
    let mut world = ModelledMachines::new(TwoTierLaw { sharing, migration_cost, seed });
    let mut steps = Vec::new();
    let outside = beginning_events(&[host]).into_iter().chain(submissions).map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    let end = play_run(&mut run, &mut world, outside, Time::from_secs(10_000_000), see);
    (run, steps, end)
}

/// Returns the time at which each task finished, by task id minus `first`.
pub(crate) fn finishes(steps: &[Step], first: u32) -> BTreeMap<u32, Time> {
    let of_step = |step: &Step| {
        let at = step.at;
        let of_notice = move |notice: &Notice| match notice {
            Notice::TaskFinished { task, .. } => Some((task.get().checked_sub(first)?, at)),
            _ => None,
        };
        step.notices.iter().filter_map(of_notice).collect::<Vec<_>>()
    };
    steps.iter().flat_map(of_step).collect()
}
