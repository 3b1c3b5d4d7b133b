//! Customers of the provider as a third tenant: their requests take the room of a bag's spot VMs. Checks the notices
//! that each of the three tenants gets.

use std::sync::{Arc, Mutex};

use dormouse_cloud::{Market, Placement, PlacementRule, ProviderTerms, ResourceVector};
use dormouse_engine::drive::{BOUNDLESS, RequestEvents};
use dormouse_engine::{Run, tenants_view};
use dormouse_model::{Effect, Event, Notice, Setup, Step, TenantWork, Tenants, VmEnd, VmRequest};
use dormouse_policies::requests::Customers;
use dormouse_policies::{BagSchedulerName, Policy};
use dormouse_units::{Bytes, RandomStream, RequestId, Span, TenantId, Time, VmId};
use dormouse_vm::ProcessorSharing;

use super::world::{
    self, KIND, PROCESSORS, Played, drawn, finishes, jobs_policy, shared, submissions,
};

const NOTICE: Span = Span::from_secs(120);
const BOOT: Span = Span::from_secs(60);
const ALL: [TenantWork; 3] = [TenantWork::Bag, TenantWork::Jobs, TenantWork::Requests];

/// Makes a setup with a bag of `tasks` tasks of 100 to 399 s, on a provider that takes spot VMs away to make room.
fn setup(seed: u64, tasks: usize) -> Setup {
    let mut chance = RandomStream::new(seed, "bag", 0);
    let runtimes = (0..tasks).map(|_| 100 + chance.draw_below(300) as u64);
    let placement = Placement::Rule(PlacementRule::default());
    let terms = ProviderTerms { placement, ..ProviderTerms::default() };
    let setup = world::setup(seed, runtimes, BOOT);
    Setup { terms, requests: true, preemption_notice: NOTICE, ..setup }
}

/// A request for a VM: the time in s, the market, and the duration in s.
type Asks = (u64, Market, u64);

/// Makes the events from outside of a run: random jobs and these requests.
fn outside(first: u32, seed: u64, jobs: usize, asks: &[Asks]) -> Vec<(Time, Event)> {
    let request = |&(at, market, duration): &Asks| {
        let duration = Span::from_secs(duration);
        Ok::<_, ()>((Time::from_secs(at), VmRequest { kind: KIND.into(), market, duration }))
    };
    let requested = RequestEvents::from(asks.iter().map(request), RequestId::new(0));
    let mut all = submissions(first, &drawn(seed, jobs));
    all.extend(requested.map(|event| event.expect("it is made here")));
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Notices that a policy was given.
type Heard = Arc<Mutex<Vec<Notice>>>;

/// Test policy that records the notices of the policy inside it.
#[derive(Debug)]
struct Spy(Box<dyn Policy>, Heard);

impl Policy for Spy {
    fn hearing(&self) -> dormouse_policies::Delivery {
        self.0.hearing()
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<dormouse_model::Decision>) {
        self.1.lock().expect("nobody panicked").extend_from_slice(heard);
        self.0.handle(now, heard, out);
    }
}

/// Makes a run of the three tenants, and returns the notices that each gets.
fn three(setup: &Setup, name: BagSchedulerName, fleet: Market, vms: u32) -> (Run, [Heard; 3]) {
    let heard: [Heard; 3] = Default::default();
    let policies: [Box<dyn Policy>; 3] = [
        world::bag_policy(setup, name, &[(KIND, fleet, vms)]),
        jobs_policy(),
        Box::new(Customers::new()),
    ];
    let spies = policies.into_iter().zip(heard.clone()).map(|(it, to)| Box::new(Spy(it, to)) as _);
    (shared(setup, ALL.into_iter().zip(spies).collect()), heard)
}

fn played(run: Run, host: ResourceVector, outside: Vec<(Time, Event)>) -> Played {
    world::played(run, host, outside, ProcessorSharing::PERFECT)
}

/// Returns the size of a host with room for the machine for parallel jobs and `vms` VMs beside it.
fn host(vms: u32) -> ResourceVector {
    ResourceVector::new(PROCESSORS + 2 * vms, Bytes::new(100_000))
}

fn effects(steps: &[Step]) -> impl Iterator<Item = (Time, &Effect)> {
    steps.iter().flat_map(|step| step.effects.iter().map(|effect| (step.at, effect)))
}

/// Returns the time at which a VM was ready.
fn ready(steps: &[Step], of: VmId) -> Option<Time> {
    effects(steps).find(|(_, e)| matches!(e, Effect::VmReady { vm } if *vm == of)).map(|(at, _)| at)
}

#[test]
fn a_request_is_served_after_notice_and_boot_and_the_bag_goes_on() {
    let setup = setup(1, 6);
    let (run, _) = three(&setup, BagSchedulerName::Fifo, Market::Spot, 2);
    let come = outside(6, 1, 3, &[(150, Market::OnDemand, 200)]);
    let (run, steps, end) = played(run, host(2), come);
    assert_eq!((end, run.counts().rejected), (Ok(()), 0));
    assert_eq!(finishes(&steps, 0).len(), 9, "all tasks and jobs");
    let displaced: Vec<_> = effects(&steps)
        .filter_map(|(at, effect)| match effect {
            Effect::Displaced { vm, by, .. } => Some((at, *vm, *by)),
            _ => None,
        })
        .collect();
    // Its VM is the third tenant's first; the bag's have numbers that 3 divides.
    let [(at, victim, by)] = displaced[..] else { panic!("{displaced:?}") };
    assert_eq!((at, by, victim.get() % 3), (Time::from_secs(150), VmId::new(2), 0));
    assert_eq!(ready(&steps, by), Some(at + NOTICE + BOOT));
    let taken = |effect: &Effect| matches!(effect, Effect::VmEnded { vm, why, .. } if *vm == victim && *why == VmEnd::Preempted);
    let ended = effects(&steps).find(|(_, effect)| taken(effect)).map(|(at, _)| at);
    assert_eq!(ended, Some(at + NOTICE));
    // The owner is not told for whom.
    let step = steps.iter().find(|step| step.at == at && !step.effects.is_empty());
    let seen = tenants_view(step.expect("it happened"), &ALL.into(), TenantId::new(0));
    let says = |effect: &Effect| matches!(effect, Effect::Displaced { .. });
    assert!(!seen.effects.is_empty() && !seen.effects.iter().any(says), "{seen:?}");
}

#[test]
fn no_tenant_hears_of_anothers_and_no_two_have_a_number() {
    use BagSchedulerName::{BurstHads, Fifo, Hads};
    let mut displaced = 0;
    for seed in 0..30_u64 {
        let mut chance = RandomStream::new(seed, "requests", 0);
        let mut at = 0;
        let mut asks = || {
            at += chance.draw_below(200) as u64;
            let market = if chance.draw_below(4) == 0 { Market::Spot } else { Market::OnDemand };
            (at, market, 1 + chance.draw_below(400) as u64)
        };
        let asks: Vec<Asks> = (0..12).map(|_| asks()).collect();
        let name = [Fifo, Hads, BurstHads][seed as usize % 3];
        let setup = setup(seed, 10);
        let (run, heard) = three(&setup, name, Market::Spot, 3);
        let (run, steps, end) = played(run, host(4), outside(10, seed, 8, &asks));
        assert_eq!((end, run.counts().rejected), (Ok(()), 0), "{name:?} {seed}");
        assert_eq!(finishes(&steps, 0).len(), 18, "{name:?} {seed}");

        let mut launched = std::collections::BTreeSet::new();
        for (_, effect) in effects(&steps) {
            match effect {
                Effect::VmLaunched { vm, .. } => assert!(launched.insert(*vm), "{vm} twice"),
                Effect::Displaced { .. } => displaced += 1,
                _ => {}
            }
        }
        let tenants = Tenants::from(ALL);
        for (n, heard) in heard.iter().enumerate() {
            let heard = heard.lock().expect("nobody panicked");
            // What is for all stands in a step as often as it is said.
            let own = |it: &Notice| !matches!(it, Notice::Begin | Notice::HostJoined);
            let heard: Vec<_> = heard.iter().filter(|it| own(it)).cloned().collect();
            let tenant = tenants.tenant_ids().nth(n).expect("one of them");
            let seen = |step| tenants_view(step, &tenants, tenant).notices;
            let seen = steps.iter().flat_map(seen).filter(own);
            // Once its work is done it is told nothing.
            let seen: Vec<_> = seen.take(heard.len()).collect();
            assert_eq!(seen, heard, "tenant {n} of {seed}");
            let foreign = |notice: &&Notice| match notice {
                Notice::Requested { .. } => ALL[n] != TenantWork::Requests,
                Notice::Submitted { .. } => ALL[n] != TenantWork::Jobs,
                Notice::TaskFinished { task, .. } => {
                    (task.get() < 10) != (ALL[n] == TenantWork::Bag)
                }
                _ => false,
            };
            assert_eq!(heard.iter().find(foreign), None, "tenant {n} of {seed}");
        }
    }
    assert!(displaced > 30, "{displaced}");
}

#[test]
fn what_customers_have_is_not_taken_from_what_an_account_may_have() {
    // Five in each market: eight of the customers' are there, and the bag has its five all the same.
    let asks = [(0, Market::OnDemand, 1_000); 8];
    for (wanted, refused) in [(5, 0), (6, 1)] {
        let setup = setup(3, 12);
        let (run, _) = three(&setup, BagSchedulerName::Fifo, Market::OnDemand, wanted);
        let (run, steps, end) = played(run, BOUNDLESS, outside(12, 3, 2, &asks));
        assert_eq!((end, run.counts().rejected), (Ok(()), 0));
        let limited = |notice: &Notice| matches!(notice, Notice::LaunchRefused { vm, .. } if vm.get() % 3 == 0);
        let count = steps.iter().flat_map(|step| &step.notices).filter(|it| limited(it)).count();
        assert_eq!((count > 0, run.counts().launches_refused > 0), (refused > 0, refused > 0));
        let of_customers =
            |effect: &Effect| matches!(effect, Effect::VmReady { vm } if vm.get() % 3 == 2);
        assert_eq!(effects(&steps).filter(|(_, effect)| of_customers(effect)).count(), 8);
    }
}
