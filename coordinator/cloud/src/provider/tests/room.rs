//! Tests of VMs that make room for others and get their room back: step by step, and in random order.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::cast_possible_truncation, reason = "draws below small numbers")]

use std::collections::BTreeMap;

use super::*;
use crate::{
    CostName, HostFilter, InstanceType, SchedulerName, TieBreak, VictimTies, ViewSource, VmLimits,
    Weigher,
};
use dormouse_units::Span;

const HOST: HostId = HostId::new(0);

fn kind(name: &str, vcpus: u32, memory: u64, disk: u64) -> InstanceType {
    InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(memory),
        disk: Bytes::new(disk),
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(2_000)),
        spot: Some(Price::from_nanos_per_hour(1_000)),
        limits: VmLimits { spot: 9, on_demand: 9 },
        burstable: None,
    }
}

/// A provider of small, large and odd VMs that takes the room of spot VMs by this kind of
/// preemption, under a rule of the OPIE paper.
fn provider_of(
    preemption: PreemptionAction,
    scheduler: SchedulerName,
    spot: SpotPlaces,
) -> Provider {
    let kinds = [kind("small", 1, 10, 5), kind("large", 4, 40, 20), kind("odd", 1, 60, 40)];
    let catalogue = Catalogue {
        types: kinds.map(|kind| (kind.name.clone(), kind)).into(),
        boot: Span::from_secs(60),
        hibernation: Span::from_secs(30),
    };
    let rule = PlacementRule {
        scheduler,
        filters: vec![HostFilter::Vcpus, HostFilter::Memory, HostFilter::Disk],
        weighers: vec![Weigher::Overcommit.weighed_once(), Weigher::VictimCost.weighed_once()],
        retry_weighers: Vec::new(),
        cost: CostName::Number,
        victims: VictimTies::Oldest,
        ties: TieBreak::First,
        states: ViewSource::Kept,
    };
    let placement = crate::Placement::Rule(rule);
    Provider::new(
        catalogue,
        &ProviderTerms { placement, preemption, spot, ..ProviderTerms::default() },
    )
}

fn hibernating() -> Provider {
    provider_of(PreemptionAction::Hibernate, SchedulerName::Opie, SpotPlaces::Own)
}

fn room(vcpus: u32, memory: u64, disk: u64) -> ResourceVector {
    ResourceVector { disk: Bytes::new(disk), ..ResourceVector::new(vcpus, Bytes::new(memory)) }
}

fn ask(p: &mut Provider, at: u64, id: u32, kind: &str, market: Market) -> Option<Vec<u32>> {
    let launched = launch(p, Time::from_secs(at), VmId::new(id), &kind.into(), (market, None));
    Some(launched.ok()?.victims.iter().map(|vm| vm.get()).collect())
}

#[test]
fn a_vm_that_makes_room_gives_vcpus_and_memory_and_has_them_back_before_other_spot_vms() {
    let (mut p, s, vm) = (hibernating(), Time::from_secs, VmId::new);
    p.host_joined(HOST, room(4, 60, 100));
    assert_eq!(ask(&mut p, 0, 1, "large", Market::Spot), Some(vec![]));
    assert!(p.vm_booted(s(60), vm(1)));
    assert_eq!(ask(&mut p, 100, 2, "odd", Market::OnDemand), Some(vec![1]), "for its memory");
    assert!(p.waits_for_room(vm(2)) && p.find_vm(vm(1)).unwrap().is_displaced());
    assert_eq!(p.take_placed(), []);
    // No VM is asked twice.
    assert_eq!(ask(&mut p, 101, 3, "small", Market::OnDemand), None);
    assert!(p.vm_hibernated(s(110), vm(1)));
    assert_eq!((p.take_placed(), p.waits_for_room(vm(2))), (vec![vm(2)], false));
    // Three vCPUs are left and no memory; the disk is its own.
    assert_eq!(p.fleet.free_room(HOST), room(3, 0, 40));
    assert_eq!(p.give_back(s(111)), []);
    assert!(p.vm_terminated(s(120), vm(2), EndedBy::User));
    assert_eq!(p.fleet.free_room(HOST), room(4, 60, 80));
    assert_eq!(p.give_back(s(120)), [], "it has not been hibernated for long enough");
    let resume = Interruption {
        at: s(140),
        target: InterruptionTarget::Vm(vm(1)),
        action: InterruptionAction::Resume,
    };
    assert_eq!(p.hit_by(s(140), &resume), [], "its provider resumes it");
    // A spot VM has what is spare, an on-demand VM whatever is free.
    assert_eq!(p.fleet.spare_room(HOST), room(0, 20, 80));
    assert_eq!(ask(&mut p, 139, 4, "small", Market::Spot), None);
    assert_eq!(ask(&mut p, 139, 5, "small", Market::OnDemand), Some(vec![]));
    assert_eq!(p.give_back(s(140)), []);
    assert!(p.vm_terminated(s(150), vm(5), EndedBy::User));
    assert_eq!(p.give_back(s(150)), [vm(1)]);
    assert_eq!(
        (p.fleet.free_room(HOST), p.fleet.spare_room(HOST)),
        (room(0, 20, 80), room(0, 20, 80))
    );
    // Until the VM runs again, it makes no room.
    assert_eq!(ask(&mut p, 151, 6, "small", Market::OnDemand), None);
    assert!(p.vm_resumed(s(152), vm(1)) && !p.find_vm(vm(1)).unwrap().is_displaced());
    assert_eq!(ask(&mut p, 153, 6, "small", Market::OnDemand), Some(vec![1]));
    let charged: Span =
        p.find_vm(vm(1)).unwrap().charges().iter().map(ChargedInterval::duration).sum();
    assert_eq!(charged, Span::from_secs(50), "not while it was hibernated");
}

#[test]
fn nobody_is_chosen_who_could_not_make_the_room() {
    let (mut p, s, vm) = (hibernating(), Time::from_secs, VmId::new);
    p.host_joined(HOST, room(8, 200, 40));
    for id in [1, 2] {
        assert_eq!(ask(&mut p, 0, id, "large", Market::Spot), Some(vec![]));
    }
    assert!(p.vm_booted(s(60), vm(1)));
    // The disk is full, and only the one that boots would leave its own.
    assert_eq!(ask(&mut p, 61, 3, "small", Market::OnDemand), Some(vec![2]));
    assert!(!p.find_vm(vm(2)).unwrap().is_displaced(), "it ends");
    assert!(p.vm_terminated(s(61), vm(2), EndedBy::Provider));
    assert_eq!(p.take_placed(), [vm(3)]);
    assert_eq!(ask(&mut p, 62, 4, "odd", Market::OnDemand), None, "for its disk");
    // Memory that is filled stays taken: it is really there.
    let mut p = hibernating().with_filling([("large".into(), Bytes::new(50))].into());
    p.host_joined(HOST, ResourceVector { filled: Bytes::new(90), ..room(8, 200, 400) });
    assert_eq!(ask(&mut p, 0, 1, "large", Market::Spot), Some(vec![]));
    assert!(p.vm_booted(s(60), vm(1)));
    assert_eq!(ask(&mut p, 61, 2, "large", Market::OnDemand), None);
    let mut p = provider_of(PreemptionAction::Terminate, SchedulerName::Opie, SpotPlaces::Own)
        .with_filling([("large".into(), Bytes::new(50))].into());
    p.host_joined(HOST, ResourceVector { filled: Bytes::new(90), ..room(8, 200, 400) });
    assert_eq!(ask(&mut p, 0, 1, "large", Market::Spot), Some(vec![]));
    assert!(p.vm_booted(s(60), vm(1)));
    assert_eq!(ask(&mut p, 61, 2, "large", Market::OnDemand), Some(vec![1]));
}

#[test]
fn those_that_made_room_resume_in_the_order_in_which_they_froze() {
    let (mut p, s, vm) = (hibernating(), Time::from_secs, VmId::new);
    p.host_joined(HOST, room(4, 100, 100));
    for id in [1, 2, 3] {
        assert_eq!(ask(&mut p, 0, id, "small", Market::Spot), Some(vec![]));
        assert!(p.vm_booted(s(60), vm(id)));
    }
    assert_eq!(ask(&mut p, 70, 4, "large", Market::OnDemand), Some(vec![1, 2, 3]));
    for (at, id) in [(71, 2), (72, 3), (73, 1)] {
        assert!(p.vm_hibernated(s(at), vm(id)));
    }
    // One's owner gives it back meanwhile, and another is given notice for its own sake.
    assert!(p.vm_terminated(s(80), vm(3), EndedBy::User));
    assert!(p.vm_terminated(s(200), vm(4), EndedBy::User));
    assert_eq!(p.give_back(s(200)), [2, 1].map(vm));
    let (mut p, first) = (hibernating(), vm(1));
    p.host_joined(HOST, room(1, 100, 100));
    assert_eq!(ask(&mut p, 0, 1, "small", Market::Spot), Some(vec![]));
    assert!(p.vm_booted(s(60), first));
    assert_eq!(ask(&mut p, 70, 2, "small", Market::OnDemand), Some(vec![1]));
    p.given_notice(first);
    assert!(p.vm_hibernated(s(71), first) && p.vm_terminated(s(80), vm(2), EndedBy::User));
    assert_eq!(p.give_back(s(200)), [], "it is to end");
}

#[test]
fn places_in_the_background_are_kept_for_those_who_left_them() {
    let mut p =
        provider_of(PreemptionAction::Hibernate, SchedulerName::Opie, SpotPlaces::Background);
    let (s, vm) = (Time::from_secs, VmId::new);
    p.host_joined(HOST, room(4, 80, 400));
    assert_eq!(ask(&mut p, 0, 1, "large", Market::Spot), Some(vec![]));
    assert!(p.vm_booted(s(60), vm(1)));
    assert_eq!(ask(&mut p, 61, 2, "odd", Market::OnDemand), Some(vec![1]), "for its memory");
    assert!(p.vm_hibernated(s(62), vm(1)));
    assert_eq!(ask(&mut p, 63, 3, "small", Market::Spot), None);
    assert!(p.vm_terminated(s(64), vm(2), EndedBy::User));
    assert_eq!(ask(&mut p, 65, 3, "small", Market::Spot), None, "its places are kept");
    p.look_again(vm(1));
    assert_eq!(p.give_back(s(92)), [vm(1)]);
    assert_eq!(p.fleet.free_room(HOST), room(4, 40, 380));
}

/// A provider under random operations, and the room that each host offers.
struct World {
    p: Provider,
    preemption: PreemptionAction,
    chance: RandomStream,
    now: u64,
    next: u32,
    offers: BTreeMap<HostId, ResourceVector>,
    /// Second at which each VM that has notice ends.
    ends: BTreeMap<VmId, u64>,
    /// Numbers of VMs that were launched, that waited, that were displaced, that got their room
    /// back, and that waited in vain.
    counts: [usize; 5],
}

impl World {
    fn alive(&self, fits: impl Fn(&ProviderVm) -> bool) -> Vec<VmId> {
        self.p.alive_vms().filter(|(_, vm)| fits(vm)).map(|(id, _)| id).collect()
    }

    fn one(&mut self, fits: impl Fn(&ProviderVm) -> bool) -> Option<VmId> {
        let all = self.alive(fits);
        (!all.is_empty()).then(|| all[self.chance.draw_below(all.len())])
    }

    fn launch(&mut self) {
        let id = VmId::new(self.next);
        self.next += 1;
        let kind = ["small", "large", "odd"][self.chance.draw_below(3)];
        let market = [Market::Spot, Market::OnDemand][self.chance.draw_below(2)];
        let spare: BTreeMap<_, _> =
            self.offers.keys().map(|host| (*host, self.p.fleet.spare_room(*host))).collect();
        let asked = LaunchRequest { kind: &kind.into(), market, bid: None, limited: false };
        let Ok(launched) = self.p.launch_vm(Time::from_secs(self.now), id, &asked) else { return };
        self.counts[0] += 1;
        let size = self.p.find_vm(id).unwrap().size;
        if market == Market::Spot {
            assert!(spare[&launched.host].holds(&size), "it is others'");
            assert_eq!(launched.victims, []);
        }
        let waits = !launched.victims.is_empty();
        self.counts[1] += usize::from(waits);
        assert_eq!((launched.ready_at.is_none(), self.p.waits_for_room(id)), (waits, waits));
        for victim in launched.victims {
            let vm = self.p.find_vm(victim).unwrap();
            assert!(vm.is_alive() && vm.market == Market::Spot && vm.host == launched.host);
            assert!(!self.ends.contains_key(&victim), "it ends anyhow");
            assert_eq!(
                vm.is_displaced(),
                vm.state == ProviderVmState::Hibernating && !vm.has_notice
            );
            if vm.is_displaced() {
                assert_eq!(self.preemption, PreemptionAction::Hibernate);
                self.counts[2] += 1;
            } else if vm.state == ProviderVmState::Booting {
                self.end(victim);
            } else {
                assert_eq!(self.preemption, PreemptionAction::Terminate);
                self.ends.insert(victim, self.now + 120);
            }
        }
    }

    fn end(&mut self, id: VmId) {
        self.counts[4] += usize::from(self.p.waits_for_room(id));
        assert!(self.p.vm_terminated(Time::from_secs(self.now), id, EndedBy::User));
        self.ends.remove(&id);
    }

    fn step(&mut self) {
        self.now += self.chance.draw_below(40) as u64;
        let (now, spot) = (Time::from_secs(self.now), |vm: &ProviderVm| vm.market == Market::Spot);
        let due: Vec<_> =
            self.ends.iter().filter(|(_, at)| **at <= self.now).map(|(vm, _)| *vm).collect();
        due.into_iter().for_each(|vm| self.end(vm));
        match self.chance.draw_below(20) {
            0..=7 => self.launch(),
            8 | 9 => {
                if let Some(vm) = self.one(|_| true) {
                    self.end(vm);
                }
            }
            10..=13 => {
                let boots = |vm: &ProviderVm| vm.state == ProviderVmState::Booting;
                let mut booting = self.alive(boots);
                booting.retain(|vm| !self.p.waits_for_room(*vm));
                assert!(booting.into_iter().all(|vm| self.p.vm_booted(now, vm)));
            }
            14 | 15 => {
                if let Some(vm) = self.one(|vm| vm.state == ProviderVmState::Hibernating) {
                    assert!(self.p.vm_hibernated(now, vm));
                }
            }
            16 => {
                if let Some(vm) = self.one(|vm| vm.state == ProviderVmState::Resuming) {
                    assert!(self.p.vm_resumed(now, vm));
                }
            }
            // Interruptions come beside it.
            17 => {
                if let Some(vm) = self.one(|vm| spot(vm) && vm.state == ProviderVmState::Running) {
                    assert!(self.p.hibernate_vm(vm));
                }
            }
            18 => {
                let act = |vm| Interruption {
                    at: now,
                    target: InterruptionTarget::Vm(vm),
                    action: InterruptionAction::Resume,
                };
                if let Some(vm) = self.one(spot)
                    && self.p.hit_by(now, &act(vm)) == [vm]
                {
                    self.p.resume_vm(vm);
                }
            }
            _ => {
                let host = HostId::new(self.chance.draw_below(3) as u32);
                for vm in self.p.host_lost(now, host) {
                    self.ends.remove(&vm);
                }
                let offer = room(4 + self.chance.draw_below(8) as u32, 120, 90);
                self.p.host_joined(host, offer);
                self.offers.insert(host, offer);
            }
        }
        self.p.take_placed();
        let parked: Vec<_> = self.alive(ProviderVm::is_displaced);
        parked.iter().for_each(|vm| self.p.look_again(*vm));
        self.counts[3] += self.p.give_back(now).len();
        self.look(now);
    }

    /// Checks the invariants that hold at any time.
    fn look(&self, now: Time) {
        let dims =
            |h: &ResourceVector| [h.vcpus.into(), h.memory.get(), h.disk.get(), h.filled.get()];
        for (id, offer) in &self.offers {
            let free = self.p.fleet.free_room(*id);
            let there = || self.p.alive_vms().filter(|(_, vm)| vm.host == *id);
            let held = |vm| self.p.fleet.held_room(*id, vm);
            let sum = there().fold(free, |sum, (vm, _)| sum.plus_room(&held(vm)));
            let endless = Bytes::new(u64::MAX);
            assert_eq!(
                sum,
                ResourceVector { filled: endless, ..*offer },
                "room is neither lost nor made"
            );
            let (mut lacks, mut promised) =
                (ResourceVector::of_vcpus(0), ResourceVector::of_vcpus(0));
            for (vm, is) in there() {
                let left = is.size.left_while_hibernated();
                let whole = match is.state {
                    ProviderVmState::Hibernated { .. } => is.size.minus_room(&left),
                    _ => is.size,
                };
                if self.p.waits_for_room(vm) {
                    lacks = lacks.plus_room(&is.size.minus_room(&held(vm)));
                } else {
                    assert_eq!(held(vm), whole, "{vm}");
                }
                promised = match (is.state, self.ends.contains_key(&vm)) {
                    (_, true) => promised.plus_room(&held(vm)),
                    (ProviderVmState::Hibernating, false) => promised.plus_room(&left),
                    _ => promised,
                };
                if let ProviderVmState::Hibernated { since } = is.state
                    && is.is_displaced
                    && now >= since + Span::from_secs(30)
                {
                    assert!(!free.holds(&left), "{vm} waits beside its room");
                }
            }
            assert!(promised.holds(&lacks), "nobody waits for what nobody leaves");
            for (lacks, free) in dims(&lacks).into_iter().zip(dims(&free)) {
                assert!(lacks == 0 || free == 0, "nobody waits for what is there");
            }
        }
    }
}

#[test]
fn room_is_neither_lost_nor_waited_for_in_vain_whatever_happens() {
    for preemption in [PreemptionAction::Terminate, PreemptionAction::Hibernate] {
        let mut sum = [0; 5];
        for seed in 0..60 {
            let scheduler = [SchedulerName::Opie, SchedulerName::Retry][seed as usize % 2];
            let mut world = World {
                p: provider_of(preemption, scheduler, SpotPlaces::Own),
                preemption,
                chance: RandomStream::new(seed, "rooms", 0),
                now: 0,
                next: 0,
                offers: BTreeMap::new(),
                ends: BTreeMap::new(),
                counts: [0; 5],
            };
            for (host, offer) in
                [room(8, 120, 90), room(4, 100, 60), room(10, 200, 80)].iter().enumerate()
            {
                world.p.host_joined(HostId::new(host as u32), *offer);
                world.offers.insert(HostId::new(host as u32), *offer);
            }
            for _ in 0..400 {
                world.step();
            }
            // Those that wait have their room once the others have left theirs, and then those that
            // made it.
            for vm in world.alive(|vm| vm.state == ProviderVmState::Hibernating) {
                assert!(world.p.vm_hibernated(Time::from_secs(world.now), vm));
            }
            for vm in world.ends.keys().copied().collect::<Vec<_>>() {
                world.end(vm);
            }
            assert!(world.alive(|_| true).iter().all(|vm| !world.p.waits_for_room(*vm)));
            for vm in world.alive(|vm| vm.market == Market::OnDemand) {
                world.end(vm);
            }
            // Nothing but on-demand VMs ever had what spot VMs left.
            let parked = world.alive(ProviderVm::is_displaced);
            parked.iter().for_each(|vm| world.p.look_again(*vm));
            world.p.give_back(Time::from_secs(world.now + 30));
            assert_eq!(world.alive(ProviderVm::is_displaced), []);
            sum.iter_mut().zip(world.counts).for_each(|(sum, n)| *sum += n);
        }
        let [launched, waited, displaced, given_back, in_vain] = sum;
        assert!(launched > 2_000 && waited > 200 && in_vain > 10, "{sum:?}");
        let hibernates = preemption == PreemptionAction::Hibernate;
        assert_eq!((displaced > 100, given_back > 30), (hibernates, hibernates), "{sum:?}");
    }
}
