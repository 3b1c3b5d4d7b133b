//! Spot VMs in the background of the processors of others.
#![expect(clippy::cast_possible_truncation, reason = "draws below small numbers")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use dormouse_cloud::{
    Catalogue, Host, InstanceType, InterruptionModel, Limits, Market, Scope, SpotPlaces, Terms,
};
use dormouse_engine::drive::{Modelled, PlayError, TwoTierLaw, beginning, play};
use dormouse_engine::{Effect, Event, Run, Setup, Step, Work};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config, Submission, UsageInformation};
use dormouse_policies::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointConfig, Fleet, Notice, Policy, Task, build,
};
use dormouse_units::{Bytes, Ppm, Price, Span, Stream, TaskId, Tier, Time, Usage, VmId};
use dormouse_vm::Sharing;

const PROCESSORS: u32 = 4;

/// A bag of so many tasks of 100 s on a spot type of two vCPUs that boots at once.
fn setup(tasks: u32) -> Setup {
    let kind = InstanceType {
        name: "small".into(),
        vcpus: 2,
        memory: Bytes::new(100),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(9_600_000)),
        spot: Some(Price::from_nanos_per_hour(3_600_000)),
        limits: Limits { spot: 4, on_demand: 4 },
        burstable: None,
    };
    let task = |n: u32| Task {
        name: format!("t{n}"),
        memory: Bytes::new(10),
        runtime: BTreeMap::from([(kind.name.clone(), Span::from_secs(100))]),
    };
    Setup {
        seed: 1,
        bag: Bag { tasks: (0..tasks).map(task).collect(), deadline: Span::from_secs(10_000) },
        catalogue: Catalogue {
            types: [(kind.name.clone(), kind)].into(),
            boot: Span::ZERO,
            hibernation: Span::from_secs(10),
        },
        jobs: None,
        checkpoint: CheckpointConfig::NONE,
        interruptions: Vec::new(),
        preemption_notice: Span::from_secs(120),
        terms: Terms { spot: SpotPlaces::Background, ..Terms::default() },
    }
}

fn submissions(first: u32, jobs: &[(u64, u32, u64, u32)]) -> Vec<(Time, Event)> {
    let mut all: Vec<_> = (0..)
        .zip(jobs)
        .map(|(number, &(at, processes, runtime, percent))| {
            let job = Submission {
                number: u64::from(number),
                submitted: Time::from_secs(at),
                processes,
                runtime: Span::from_secs(runtime),
                estimate: Span::from_secs(2 * runtime),
                usage: Usage::Uniform(Ppm::new(percent * 10_000)),
            };
            let task = TaskId::new(first + number);
            (Time::from_secs(at), Event::Submitted { task, key: None, job: Arc::new(job) })
        })
        .collect();
    all.push((jobs.last().map_or(Time::ZERO, |job| Time::from_secs(job.0)), Event::AllSubmitted));
    all
}

/// A run of both on one host, under a bag's scheduler of this name with one spot VM.
fn run(setup: &Setup, name: BagSchedulerName) -> Run {
    let fleet = vec![Fleet { kind: "small".into(), market: Market::Spot, count: 1, bid: None }];
    let config = BagSchedulerConfig { name, fleet, ..Default::default() };
    let bag = build(&config, &setup.catalogue, &setup.bag, &setup.checkpoint, setup.seed);
    let config = Config::new(Algorithm::Measy, PROCESSORS);
    let jobs: Box<dyn Policy> = Box::new(BatchScheduler::new(config, "processors".into()));
    let both = setup.clone().with_jobs(PROCESSORS, UsageInformation::Exact);
    Run::of_tenants(both, vec![(Work::Bag, bag.expect("a policy")), (Work::Jobs, jobs)])
}

fn played(
    mut run: Run,
    vcpus: u32,
    submissions: Vec<(Time, Event)>,
    sharing: Sharing,
) -> (Run, Vec<Step>, Result<(), PlayError<Infallible>>) {
    let law = TwoTierLaw { sharing, migration_cost: Span::from_secs(20), seed: 1 };
    let (mut world, mut steps) = (Modelled::new(law), Vec::new());
    let host = Host::new(vcpus, Bytes::new(100_000));
    let outside = beginning(&[host]).into_iter().chain(submissions).map(Ok::<_, Infallible>);
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    let end = play(&mut run, &mut world, outside, Time::from_secs(10_000_000), see);
    (run, steps, end)
}

fn finishes(steps: &[Step], tasks: u32) -> Vec<u64> {
    let mut all = vec![0; tasks as usize];
    for step in steps {
        for notice in &step.notices {
            if let Notice::TaskFinished { task, .. } = notice
                && let Some(at) = all.get_mut(task.get() as usize)
            {
                *at = step.at.as_micros();
            }
        }
    }
    all
}

#[test]
fn a_task_behind_jobs_ends_later_by_exactly_what_they_took() {
    const S: u64 = 1_000_000;
    // The machine has all four processors; the VM is behind the first two, its tasks on them.
    // From 10 s to 60 s a job uses 40 % of each, from 100 s to 120 s another all of the machine's first
    // three: these are the two where nobody was, and the first of the other two.
    let jobs = [(10, 4, 50, 40), (100, 3, 20, 100)];
    let (run, steps, end) = played(
        run(&setup(2), BagSchedulerName::Fifo),
        PROCESSORS,
        submissions(2, &jobs),
        Sharing::PERFECT,
    );
    assert_eq!((end, run.counts().rejected), (Ok(()), 0));
    // Both lack .4 × 50 s; the first, of 20 s to come at 100 s, all of another 20 s.
    assert_eq!(finishes(&steps, 4), [140 * S, 120 * S, 60 * S, 120 * S]);
    let effects = || steps.iter().flat_map(|step| step.effects.iter().map(|e| (step.at, e)));
    let supplied: Vec<_> = effects()
        .filter_map(|(at, effect)| match effect {
            Effect::Supplied { vm, vcpu, share } => {
                assert_eq!(*vm, VmId::new(0));
                Some((at.as_micros() / S, *vcpu, share.get()))
            }
            _ => None,
        })
        .collect();
    let both = |at, share| [(at, 0, share), (at, 1, share)];
    let expected =
        [&both(10, 600_000)[..], &both(60, 1_000_000), &[(100, 0, 0), (120, 0, 1_000_000)]];
    assert_eq!(supplied, expected.concat());
    let placed: Vec<_> = effects()
        .filter_map(|(_, effect)| match effect {
            Effect::Placed { vm, tier, processors } => Some((vm.get(), *tier, processors.clone())),
            _ => None,
        })
        .collect();
    assert!(placed.contains(&(0, Tier::Background, vec![0, 1])), "{placed:?}");
    let machine = placed.iter().find(|(vm, ..)| *vm == 1).expect("the machine");
    assert_eq!(machine.1, Tier::Foreground);
}

#[test]
fn it_makes_use_of_a_part_of_what_it_is_left_where_that_was_measured() {
    let jobs = [(0, 4, 1_000, 50)];
    let ends = |sharing| {
        let run = run(&setup(1), BagSchedulerName::Fifo);
        let (_, steps, end) = played(run, PROCESSORS, submissions(1, &jobs), sharing);
        assert_eq!(end, Ok(()));
        finishes(&steps, 1)[0]
    };
    assert_eq!(ends(Sharing::PERFECT), 200_000_000);
    let measured = ends(Sharing::default());
    // Of half a processor .8 to .92.
    assert!((217_391_304..=250_000_001).contains(&measured), "{measured}");
}

#[test]
fn whatever_happens_to_both_all_is_done_and_no_decision_is_rejected() {
    use BagSchedulerName::{BurstHads, Fifo, Hads, IlsOnDemand};
    for seed in 0..40_u64 {
        let mut chance = Stream::new(seed, "jobs", 0);
        let mut at = 0;
        let jobs: Vec<_> = (0..30)
            .map(|_| {
                at += chance.below(60) as u64;
                let processes = 1 + chance.below(PROCESSORS as usize) as u32;
                (at, processes, 1 + chance.below(200) as u64, 10 + chance.below(91) as u32)
            })
            .collect();
        for name in [Fifo, Hads, BurstHads, IlsOnDemand] {
            let hibernate_every = Some(Span::from_secs(300));
            let poisson = InterruptionModel::Poisson {
                hibernate_every,
                resume_every: Some(Span::from_secs(200)),
                scope: Scope::Type,
            };
            let interruptions = if seed % 2 == 0 { vec![poisson] } else { Vec::new() };
            let setup = Setup { seed, interruptions, ..setup(12) };
            let (run, steps, end) =
                played(run(&setup, name), 8, submissions(12, &jobs), Sharing::default());
            assert_eq!(end, Ok(()), "{name:?} {seed}");
            assert_eq!(run.counts().rejected, 0, "{name:?} {seed}");
            assert!(finishes(&steps, 42).iter().all(|at| *at > 0), "{name:?} {seed}");
        }
    }
}

#[test]
fn a_machine_that_never_finds_room_ends_the_run() {
    // The bag's VM is on the only host, and its task needs a type that is refused there.
    let mut setup = setup(2);
    setup.terms = Terms::default();
    let small = setup.catalogue.types["small"].clone();
    let large = InstanceType { name: "large".into(), vcpus: 9, ..small };
    setup.catalogue.types.insert("large".into(), large);
    setup.bag.tasks[1].runtime = [("large".into(), Span::from_secs(1))].into();
    let fleet = ["small", "large"].map(|kind| Fleet {
        kind: kind.into(),
        market: Market::OnDemand,
        count: 1,
        bid: None,
    });
    let config = BagSchedulerConfig {
        name: BagSchedulerName::Fifo,
        fleet: fleet.to_vec(),
        ..Default::default()
    };
    let bag = build(&config, &setup.catalogue, &setup.bag, &setup.checkpoint, 1).expect("a policy");
    let config = Config::new(Algorithm::Measy, PROCESSORS);
    let jobs: Box<dyn Policy> = Box::new(BatchScheduler::new(config, "processors".into()));
    let both = setup.with_jobs(PROCESSORS, UsageInformation::Exact);
    let run = Run::of_tenants(both, vec![(Work::Bag, bag), (Work::Jobs, jobs)]);
    let (run, _, end) =
        played(run, PROCESSORS, submissions(2, &[(0, 1, 10, 50)]), Sharing::PERFECT);
    let Err(PlayError::Stuck { why, .. }) = end else { panic!("{end:?}") };
    assert!(why.contains("finds no room"), "{why}");
    assert!(run.cancelled().is_some_and(|said| said.contains("finds no room")));
    assert!(run.over() < Some(Time::from_secs(1_000_000)), "{:?}", run.over());
}
