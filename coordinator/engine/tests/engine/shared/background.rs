//! Spot VMs in the background of other VMs' processors.

use std::sync::Arc;

use dormouse_cloud::{
    InstanceType, InterruptionModel, InterruptionScope, Market, ProviderTerms, ResourceVector,
    SpotPlaces,
};
use dormouse_engine::drive::PlayError;
use dormouse_model::{Effect, Setup, TenantWork};
use dormouse_policies::BagSchedulerName;
use dormouse_units::{Bytes, Span, Tier, Time, VmId};
use dormouse_vm::ProcessorSharing;

use super::world::{
    self, Job, KIND, PROCESSORS, Played, bag_policy, drawn, finishes, jobs_policy, shared,
    submissions,
};

/// Makes a setup with a bag of `tasks` tasks of 100 s on a spot type that boots at once and runs in the background of
/// other VMs.
fn setup(tasks: usize) -> Setup {
    let setup = world::setup(1, vec![100; tasks], Span::ZERO);
    Setup {
        terms: ProviderTerms { spot: SpotPlaces::Background, ..ProviderTerms::default() },
        ..setup
    }
}

/// Plays a run of a bag and parallel jobs, the bag under the scheduler of this name with one spot VM, on one host with
/// as many vCPUs as the machine for parallel jobs.
fn played(
    setup: &Setup,
    name: BagSchedulerName,
    jobs: &[Job],
    sharing: ProcessorSharing,
) -> Played {
    let bag = bag_policy(setup, name, &[(KIND, Market::Spot, 1)]);
    let run = shared(setup, vec![(TenantWork::Bag, bag), (TenantWork::Jobs, jobs_policy())]);
    let first = u32::try_from(setup.bag.tasks.len()).expect("few");
    world::played(run, host(), submissions(first, jobs), sharing)
}

fn host() -> ResourceVector {
    ResourceVector::new(PROCESSORS, Bytes::new(100_000))
}

#[test]
fn a_task_behind_jobs_ends_later_by_exactly_what_they_took() {
    const S: u64 = 1_000_000;
    // The machine has all eight processors; the VM is behind the first two, its tasks on them.
    // From 10 s to 60 s a job uses 40 % of each, from 100 s to 120 s another all of the machine's first
    // seven: these are the six where nobody was, and the first of the other two.
    let jobs = [(10, 8, 50, 40), (100, 7, 20, 100)];
    let (run, steps, end) =
        played(&setup(2), BagSchedulerName::Fifo, &jobs, ProcessorSharing::PERFECT);
    assert_eq!((end, run.counts().rejected), (Ok(()), 0));
    // Both lack .4 × 50 s; the first, of 20 s to come at 100 s, all of another 20 s.
    let ends = [140, 120, 60, 120].map(Time::from_secs);
    assert_eq!(finishes(&steps, 0), (0..).zip(ends).collect());
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
    let jobs = [(0, 8, 1_000, 50)];
    let ends = |sharing| {
        let (_, steps, end) = played(&setup(1), BagSchedulerName::Fifo, &jobs, sharing);
        assert_eq!(end, Ok(()));
        finishes(&steps, 0)[&0].as_micros()
    };
    assert_eq!(ends(ProcessorSharing::PERFECT), 200_000_000);
    let measured = ends(ProcessorSharing::default());
    // Of half a processor .8 to .92.
    assert!((217_391_304..=250_000_001).contains(&measured), "{measured}");
}

#[test]
fn whatever_happens_to_both_all_is_done_and_no_decision_is_rejected() {
    use BagSchedulerName::{BurstHads, Fifo, Hads, IlsOnDemand};
    for seed in 0..40_u64 {
        let jobs = drawn(seed, 30);
        for name in [Fifo, Hads, BurstHads, IlsOnDemand] {
            let hibernate_every = Some(Span::from_secs(300));
            let poisson = InterruptionModel::Poisson {
                hibernate_every,
                resume_every: Some(Span::from_secs(200)),
                scope: InterruptionScope::Type,
            };
            let interruptions = if seed % 2 == 0 { vec![poisson] } else { Vec::new() };
            let setup = Setup { seed, interruptions, ..setup(12) };
            let (run, steps, end) = played(&setup, name, &jobs, ProcessorSharing::default());
            assert_eq!(end, Ok(()), "{name:?} {seed}");
            assert_eq!(run.counts().rejected, 0, "{name:?} {seed}");
            assert_eq!(finishes(&steps, 0).len(), 42, "{name:?} {seed}");
        }
    }
}

#[test]
fn a_machine_that_never_finds_room_ends_the_run() {
    // The bag's VM is on the only host, and its task needs a type that is refused there.
    let mut setup = setup(2);
    setup.terms = ProviderTerms::default();
    let small = setup.catalogue.types[KIND].clone();
    let large = InstanceType { name: "large".into(), vcpus: 9, ..small };
    setup.catalogue.types.insert("large".into(), large);
    Arc::make_mut(&mut setup.bag.tasks)[1].runtime = [("large".into(), Span::from_secs(1))].into();
    let fleet = [KIND, "large"].map(|kind| (kind, Market::OnDemand, 1));
    let bag = bag_policy(&setup, BagSchedulerName::Fifo, &fleet);
    let run = shared(&setup, vec![(TenantWork::Bag, bag), (TenantWork::Jobs, jobs_policy())]);
    let (run, _, end) =
        world::played(run, host(), submissions(2, &[(0, 1, 10, 50)]), ProcessorSharing::PERFECT);
    let Err(PlayError::Stuck { why, .. }) = end else { panic!("{end:?}") };
    assert!(why.contains("finds no room"), "{why}");
    assert!(run.cancel_reason().is_some_and(|said| said.contains("finds no room")));
    assert!(run.over_at() < Some(Time::from_secs(1_000_000)), "{:?}", run.over_at());
}
