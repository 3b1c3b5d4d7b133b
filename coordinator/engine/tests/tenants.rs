//! Two tenants of one provider: a bag of tasks, and parallel jobs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use dormouse_cloud::{Catalogue, Host, InstanceType, Limits, Market};
use dormouse_engine::drive::{BOUNDLESS, Modelled, TwoTierLaw, beginning, play};
use dormouse_engine::{Effect, Event, Run, Setup, Step, VmEnd, Work};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config, Submission, UsageInformation};
use dormouse_policies::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointConfig, Decision, Fleet, Notice, Policy,
    Task, build,
};
use dormouse_units::{Bytes, Ppm, Price, Span, Stream, TaskId, Time, Usage, VmId};
use dormouse_vm::Sharing;

const PROCESSORS: u32 = 8;

fn setup(seed: u64, tasks: u32) -> Setup {
    let kind = InstanceType {
        name: "small".into(),
        vcpus: 2,
        memory: Bytes::new(100),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(3_600_000)),
        spot: None,
        limits: Limits { spot: 0, on_demand: 5 },
        burstable: None,
    };
    let mut chance = Stream::new(seed, "bag", 0);
    let task = |n: u32| Task {
        name: format!("t{n}"),
        memory: Bytes::new(10),
        runtime: BTreeMap::from([(
            kind.name.clone(),
            Span::from_secs(20 + chance.below(300) as u64),
        )]),
    };
    Setup {
        seed,
        bag: Bag { tasks: (0..tasks).map(task).collect(), deadline: Span::from_secs(10_000) },
        catalogue: Catalogue {
            types: [(kind.name.clone(), kind)].into(),
            boot: Span::from_secs(60),
            hibernation: Span::from_secs(30),
        },
        jobs: None,
        checkpoint: CheckpointConfig::NONE,
        interruptions: Vec::new(),
        preemption_notice: Span::from_secs(120),
        terms: dormouse_cloud::Terms::default(),
    }
}

fn bag_policy(setup: &Setup) -> Box<dyn Policy> {
    let fleet = vec![Fleet { kind: "small".into(), market: Market::OnDemand, count: 3, bid: None }];
    let config = BagSchedulerConfig { name: BagSchedulerName::Fifo, fleet, ..Default::default() };
    build(&config, &setup.catalogue, &setup.bag, &setup.checkpoint, setup.seed).expect("a policy")
}

fn jobs_policy() -> Box<dyn Policy> {
    let config = Config::new(Algorithm::Measy, PROCESSORS);
    Box::new(BatchScheduler::new(config, "processors".into()))
}

fn submissions(seed: u64, first: u32, count: u64) -> Vec<(Time, Event)> {
    let mut chance = Stream::new(seed, "jobs", 0);
    let mut at = 0;
    let mut all: Vec<_> = (0..count)
        .map(|number| {
            at += chance.below(60) as u64;
            let processes = 1 + chance.below(PROCESSORS as usize) as u32;
            let runtime = Span::from_secs(1 + chance.below(200) as u64);
            let job = Submission {
                number,
                submitted: Time::from_secs(at),
                processes,
                runtime,
                estimate: runtime.times(2),
                usage: Usage::Uniform(Ppm::new(600_000)),
            };
            let task = TaskId::new(first + number as u32);
            (Time::from_secs(at), Event::Submitted { task, key: None, job: Arc::new(job) })
        })
        .collect();
    all.push((Time::from_secs(at), Event::AllSubmitted));
    all
}

fn played(
    mut run: Run,
    hosts: &[Host],
    submissions: Vec<(Time, Event)>,
    seed: u64,
) -> (Run, Vec<Step>) {
    // Chance in sharing is drawn by a job's id, which differs where a bag comes first.
    let law = TwoTierLaw { sharing: Sharing::PERFECT, migration_cost: Span::from_secs(20), seed };
    let (mut world, mut steps) = (Modelled::new(law), Vec::new());
    let outside = beginning(hosts).into_iter().chain(submissions).map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    let limit = Time::from_secs(1_000_000);
    play(&mut run, &mut world, outside, limit, see).expect("all is done");
    (run, steps)
}

/// When each task finished: of its id less `first`.
fn finishes(steps: &[Step], first: u32, count: u32) -> BTreeMap<u32, Time> {
    let finished = |step: &Step| {
        let at = step.at;
        step.notices
            .iter()
            .filter_map(|notice| match notice {
                Notice::TaskFinished { task, .. } => task.get().checked_sub(first),
                _ => None,
            })
            .filter(|n| *n < count)
            .map(move |n| (n, at))
            .collect::<Vec<_>>()
    };
    steps.iter().flat_map(finished).collect()
}

#[test]
fn with_room_for_both_each_does_as_if_it_were_alone() {
    let (tasks, jobs) = (30, 60);
    for seed in 0..20 {
        let bag = setup(seed, tasks);
        let alone = Run::new(bag.clone(), bag_policy(&bag));
        let (bag_run, bag_steps) = played(alone, &[BOUNDLESS], Vec::new(), seed);

        let no_bag = Setup { bag: Bag { tasks: Vec::new(), ..bag.bag.clone() }, ..bag.clone() };
        let of_jobs = no_bag.with_jobs(PROCESSORS, UsageInformation::Exact);
        let alone = Run::new(of_jobs, jobs_policy());
        let (jobs_run, jobs_steps) = played(alone, &[BOUNDLESS], submissions(seed, 0, jobs), seed);

        let both = bag.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
        let policies = vec![(Work::Bag, bag_policy(&bag)), (Work::Jobs, jobs_policy())];
        let (run, steps) = played(
            Run::of_tenants(both, policies),
            &[BOUNDLESS],
            submissions(seed, tasks, jobs),
            seed,
        );

        assert_eq!(run.counts().rejected, 0);
        assert_eq!(finishes(&steps, 0, tasks), finishes(&bag_steps, 0, tasks), "seed {seed}");
        let jobs = u32::try_from(jobs).expect("few");
        assert_eq!(finishes(&steps, tasks, jobs), finishes(&jobs_steps, 0, jobs), "seed {seed}");

        let end = run.over().expect("it is over");
        let [of_bag, of_jobs] = run.tenants(end).collect::<Vec<_>>()[..] else {
            panic!("two tenants")
        };
        assert_eq!((of_bag.work, of_bag.makespan), (Work::Bag, bag_run.makespan()));
        assert_eq!((of_jobs.work, of_jobs.makespan), (Work::Jobs, jobs_run.makespan()));
        let alone = bag_run.owed(bag_run.over().expect("over"));
        assert_eq!(of_bag.owed, alone, "it pays for nobody else's time");
        assert_eq!(run.makespan(), of_bag.makespan.max(of_jobs.makespan));
    }
}

#[test]
fn a_tenant_whose_work_is_done_gives_its_vms_back_and_the_other_goes_on() {
    let bag = setup(1, 4);
    let both = bag.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
    let policies = vec![(Work::Bag, bag_policy(&bag)), (Work::Jobs, jobs_policy())];
    let (run, steps) =
        played(Run::of_tenants(both, policies), &[BOUNDLESS], submissions(1, 4, 60), 1);
    // Machines of jobs have odd numbers, VMs of the bag even ones.
    let ended = |whose: u32| {
        let of = move |effect: &Effect| match effect {
            Effect::VmEnded { vm, why, .. } if vm.get() % 2 == whose => Some((*vm, *why)),
            _ => None,
        };
        steps.iter().flat_map(move |s| s.effects.iter().filter_map(of)).collect::<Vec<_>>()
    };
    assert!(!ended(0).is_empty() && ended(0).iter().all(|(_, why)| *why != VmEnd::RunOver));
    assert_eq!(ended(1), [(VmId::new(1), VmEnd::RunOver)]);
    let end = run.over().expect("over");
    let of_bag = run.tenants(end).next().expect("two").makespan.expect("it is done");
    assert!(of_bag < end);
}

#[test]
fn where_there_is_room_for_one_the_other_waits_for_it() {
    // The machine would take all of the host. The bag's scheduler hears of the beginning at once and
    // has its VMs first; the machine is refused, and asked for again, until they are given back.
    let host = Host::new(PROCESSORS, Bytes::new(10_000));
    let bag = setup(2, 6);
    let both = bag.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
    let policies = vec![(Work::Jobs, jobs_policy()), (Work::Bag, bag_policy(&bag))];
    let (run, steps) = played(Run::of_tenants(both, policies), &[host], submissions(2, 6, 20), 2);
    assert!(run.counts().launches_refused > 0);
    let views: Vec<_> = run.tenants(run.over().expect("over")).collect();
    assert_eq!(views.iter().map(|view| view.work).collect::<Vec<_>>(), [Work::Jobs, Work::Bag]);
    let bag_done = views[1].makespan.expect("it is done");
    let first_job = steps.iter().find(|step| {
        let starts = |d: &Decision| matches!(d, Decision::Start { task, .. } if task.get() >= 6);
        step.decisions.iter().any(starts)
    });
    assert!(first_job.expect("jobs are started").at > bag_done);
}

/// Gives back no VM that it has.
#[derive(Debug)]
struct Keeper(Box<dyn Policy>);

impl Policy for Keeper {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        self.0.handle(now, heard, out);
        out.retain(|decision| !matches!(decision, Decision::Terminate { .. }));
    }
}

#[test]
fn room_that_a_tenant_leaves_when_its_work_is_done_is_heard_of_at_once() {
    let host = Host::new(PROCESSORS, Bytes::new(10_000));
    let bag = setup(2, 6);
    let both = bag.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
    let keeper: Box<dyn Policy> = Box::new(Keeper(bag_policy(&bag)));
    let policies = vec![(Work::Jobs, jobs_policy()), (Work::Bag, keeper)];
    let (_, steps) = played(Run::of_tenants(both, policies), &[host], submissions(2, 6, 20), 2);
    let left = |effect: &Effect| matches!(effect, Effect::VmEnded { why: VmEnd::WorkDone, .. });
    let left = steps.iter().find(|step| step.effects.iter().any(left)).expect("it leaves");
    let had = |step: &&Step| {
        let launched =
            |effect: &Effect| matches!(effect, Effect::VmLaunched { vm, .. } if vm.get() % 2 == 0);
        step.effects.iter().any(launched)
    };
    let had = steps.iter().find(had).expect("the jobs get their machine");
    assert_eq!(had.at, left.at, "not when it would have been asked for again");
}
