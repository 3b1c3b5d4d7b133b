//! Two tenants of one provider: each behaves as it does alone, in the room that the other leaves.

use std::collections::BTreeMap;

use dormouse_cloud::{Market, ResourceVector};
use dormouse_engine::Run;
use dormouse_engine::drive::BOUNDLESS;
use dormouse_model::{
    Bag, Decision, Effect, Notice, Setup, Step, TenantWork, UsageInformation, VmEnd,
};
use dormouse_policies::{BagSchedulerName, Policy};
use dormouse_units::{Bytes, RandomStream, Span, Time, VmId};
use dormouse_vm::ProcessorSharing;

use super::world::{self, KIND, PROCESSORS, drawn, jobs_policy, shared, submissions};

/// Makes a setup with a bag of `tasks` tasks of 20 to 319 s on on-demand VMs.
fn setup(seed: u64, tasks: usize) -> Setup {
    let mut chance = RandomStream::new(seed, "bag", 0);
    let runtimes = (0..tasks).map(|_| 20 + chance.draw_below(300) as u64);
    world::setup(seed, runtimes, Span::from_secs(60))
}

fn bag_policy(setup: &Setup) -> Box<dyn Policy> {
    world::bag_policy(setup, BagSchedulerName::Fifo, &[(KIND, Market::OnDemand, 3)])
}

fn played(
    run: Run,
    host: ResourceVector,
    jobs: Vec<(Time, dormouse_model::Event)>,
) -> (Run, Vec<Step>) {
    // Chance in sharing is drawn by a job's id, which differs where a bag comes first.
    let (run, steps, end) = world::played(run, host, jobs, ProcessorSharing::PERFECT);
    end.expect("all is done");
    (run, steps)
}

/// Returns the finish times of `count` tasks, by task id minus `first`.
fn finishes(steps: &[Step], first: u32, count: usize) -> BTreeMap<u32, Time> {
    let mut all = world::finishes(steps, first);
    all.retain(|n, _| (*n as usize) < count);
    all
}

#[test]
fn with_room_for_both_each_does_as_if_it_were_alone() {
    let (tasks, jobs) = (30, 60);
    for seed in 0..20 {
        let bag = setup(seed, tasks);
        let alone = Run::new(bag.clone(), bag_policy(&bag));
        let (bag_run, bag_steps) = played(alone, BOUNDLESS, Vec::new());

        let no_bag = Setup { bag: Bag { tasks: [].into(), ..bag.bag.clone() }, ..bag.clone() };
        let of_jobs = no_bag.with_jobs(PROCESSORS, UsageInformation::Exact);
        let alone = Run::new(of_jobs, jobs_policy());
        let drawn = drawn(seed, jobs);
        let (jobs_run, jobs_steps) = played(alone, BOUNDLESS, submissions(0, &drawn));

        let policies = vec![(TenantWork::Bag, bag_policy(&bag)), (TenantWork::Jobs, jobs_policy())];
        let first = u32::try_from(tasks).expect("few");
        let (run, steps) = played(shared(&bag, policies), BOUNDLESS, submissions(first, &drawn));

        assert_eq!(run.counts().rejected, 0);
        assert_eq!(finishes(&steps, 0, tasks), finishes(&bag_steps, 0, tasks), "seed {seed}");
        assert_eq!(finishes(&steps, first, jobs), finishes(&jobs_steps, 0, jobs), "seed {seed}");

        let end = run.over_at().expect("it is over");
        let [of_bag, of_jobs] = run.tenant_views(end).collect::<Vec<_>>()[..] else {
            panic!("two tenants")
        };
        assert_eq!((of_bag.work, of_bag.makespan), (TenantWork::Bag, bag_run.makespan()));
        assert_eq!((of_jobs.work, of_jobs.makespan), (TenantWork::Jobs, jobs_run.makespan()));
        let alone = bag_run.owed_now(bag_run.over_at().expect("over"));
        assert_eq!(of_bag.owed, alone, "it pays for nobody else's time");
        assert_eq!(run.makespan(), of_bag.makespan.max(of_jobs.makespan));
    }
}

#[test]
fn a_tenant_whose_work_is_done_gives_its_vms_back_and_the_other_goes_on() {
    let bag = setup(1, 4);
    let policies = vec![(TenantWork::Bag, bag_policy(&bag)), (TenantWork::Jobs, jobs_policy())];
    let (run, steps) = played(shared(&bag, policies), BOUNDLESS, submissions(4, &drawn(1, 60)));
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
    let end = run.over_at().expect("over");
    let of_bag = run.tenant_views(end).next().expect("two").makespan.expect("it is done");
    assert!(of_bag < end);
}

#[test]
fn where_there_is_room_for_one_the_other_waits_for_it() {
    // The machine would take all of the host. The bag's scheduler hears of the beginning at once and
    // has its VMs first; the machine is refused, and asked for again, until they are given back.
    let host = ResourceVector::new(PROCESSORS, Bytes::new(10_000));
    let bag = setup(2, 6);
    let policies = vec![(TenantWork::Jobs, jobs_policy()), (TenantWork::Bag, bag_policy(&bag))];
    let (run, steps) = played(shared(&bag, policies), host, submissions(6, &drawn(2, 20)));
    assert!(run.counts().launches_refused > 0);
    let views: Vec<_> = run.tenant_views(run.over_at().expect("over")).collect();
    assert_eq!(
        views.iter().map(|view| view.work).collect::<Vec<_>>(),
        [TenantWork::Jobs, TenantWork::Bag]
    );
    let bag_done = views[1].makespan.expect("it is done");
    let first_job = steps.iter().find(|step| {
        let starts = |d: &Decision| matches!(d, Decision::Start { task, .. } if task.get() >= 6);
        step.decisions.iter().any(starts)
    });
    assert!(first_job.expect("jobs are started").at > bag_done);
}

/// Test policy that never gives back a VM.
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
    let host = ResourceVector::new(PROCESSORS, Bytes::new(10_000));
    let bag = setup(2, 6);
    let keeper: Box<dyn Policy> = Box::new(Keeper(bag_policy(&bag)));
    let policies = vec![(TenantWork::Jobs, jobs_policy()), (TenantWork::Bag, keeper)];
    let (_, steps) = played(shared(&bag, policies), host, submissions(6, &drawn(2, 20)));
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

#[test]
fn room_that_a_tenant_gives_back_while_it_goes_on_is_heard_of_at_once() {
    // The machine takes the room of one of the bag's VMs.
    let host = ResourceVector::new(PROCESSORS + 4, Bytes::new(10_000));
    let bag = setup(2, 6);
    let policies = vec![(TenantWork::Jobs, jobs_policy()), (TenantWork::Bag, bag_policy(&bag))];
    let (_, steps) = played(shared(&bag, policies), host, submissions(6, &drawn(2, 20)));
    let at = |wanted: &dyn Fn(&Effect) -> bool| {
        steps.iter().find(|step| step.effects.iter().any(wanted)).expect("it happens").at
    };
    let is_of_bag = |vm: &VmId| vm.get() % 2 == 1;
    let given_back = at(
        &|effect| matches!(effect, Effect::VmEnded { vm, why: VmEnd::Terminated, .. } if is_of_bag(vm)),
    );
    let refused = |notice: &Notice| matches!(notice, Notice::LaunchRefused { .. });
    let refused = steps.iter().find(|step| step.notices.iter().any(refused)).expect("no room");
    assert!(refused.at < given_back);
    let bag_done = finishes(&steps, 0, 6).into_values().max().expect("it has tasks");
    assert!(given_back < bag_done, "its work goes on");
    let launched = at(&|e| matches!(e, Effect::VmLaunched { vm, .. } if !is_of_bag(vm)));
    assert_eq!(launched, given_back, "not when it would have been asked for again");
}
