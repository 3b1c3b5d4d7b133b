//! Compares the scheduler that keeps hosts ranked with the scheduler that examines all hosts.

use super::room;
use crate::{
    CostName, HostFilter, HostFleet, HostScheduler, Market, PlacementRequest, PlacementRule,
    Placer, PlainScheduler, ResourceVector, ScaledWeigher, SchedulerName, TieBreak, VictimTies,
    ViewSource, Weigher, YieldedRoom,
};
use dormouse_units::{HostId, RandomStream, Span, Time, VmId};

/// VM sizes (vCPUs, MB of memory, GB of disk): those of the OPIE paper, and some of other proportions.
const SIZES: [(u32, u64, u64); 5] =
    [(1, 2_000, 20), (2, 4_000, 40), (4, 8_000, 80), (1, 5_000, 7), (6, 12_000, 60)];

/// Hosts on which VMs come and go, and three schedulers that follow the same rule.
struct World {
    chance: RandomStream,
    fleet: HostFleet,
    now: Time,
    hosts: usize,
    alive: Vec<(HostId, VmId)>,
    next: u32,
    plain: PlainScheduler,
    kept: HostScheduler,
    /// Scheduler that builds its views of the hosts for each call.
    built: PlainScheduler,
    /// Unit in which time advances; with long steps, many costs are equal.
    step: Span,
}

fn one<T: Copy>(chance: &mut RandomStream, of: &[T]) -> T {
    of[chance.draw_below(of.len())]
}

fn rule(chance: &mut RandomStream) -> PlacementRule {
    use Weigher::{FreeMemory, FreeVcpus, Overcommit, PreemptibleCount, TotalCost, VictimCost};
    let all = [FreeVcpus, FreeMemory, Overcommit, PreemptibleCount, TotalCost, VictimCost];
    let mut weighers = |most: usize| -> Vec<ScaledWeigher> {
        let mut left = all.to_vec();
        let number = chance.draw_below(most + 1);
        let weighed = |_| ScaledWeigher {
            name: left.swap_remove(chance.draw_below(left.len())),
            multiplier: one(chance, &[1, 1, 2, 5, -1, -3, 0]),
        };
        (0..number).map(weighed).collect()
    };
    let (weighers, retry_weighers) = match weighers(3) {
        list if list.len() == 3 => (PlacementRule::default().weighers, Vec::new()),
        list => (list, weighers(2)),
    };
    PlacementRule {
        scheduler: one(
            chance,
            &[
                SchedulerName::Opie,
                SchedulerName::Opie,
                SchedulerName::Retry,
                SchedulerName::Filter,
            ],
        ),
        filters: vec![HostFilter::Vcpus, HostFilter::Memory, HostFilter::Disk],
        weighers,
        retry_weighers,
        cost: one(chance, &[CostName::Period, CostName::Period, CostName::Age, CostName::Number]),
        victims: one(chance, &[VictimTies::Oldest, VictimTies::Largest]),
        ties: one(chance, &[TieBreak::Random, TieBreak::Random, TieBreak::First]),
        states: ViewSource::Kept,
    }
}

impl World {
    fn new(seed: u64, hosts: usize) -> Self {
        let mut chance = RandomStream::new(seed, "agreement", hosts as u64);
        let rule = rule(&mut chance);
        let mut fleet = HostFleet::default();
        for id in 0..hosts as u32 {
            fleet.add_host(HostId::new(id), host(&mut chance));
        }
        let step = one(&mut chance, &[1, 60_000_000, 1_200_000_000]);
        let built =
            PlainScheduler::new(PlacementRule { states: ViewSource::Built, ..rule.clone() });
        let (plain, kept) = (PlainScheduler::new(rule.clone()), HostScheduler::new(rule));
        Self {
            chance,
            fleet,
            now: Time::ZERO,
            hosts,
            alive: Vec::new(),
            next: 0,
            plain,
            kept,
            built,
            step: Span::from_micros(step),
        }
    }

    /// Makes a random change to a host or a VM.
    fn disturb(&mut self) {
        let Self { chance, fleet, .. } = self;
        if chance.draw_below(60) == 0 {
            let id = HostId::new(chance.draw_below(self.hosts) as u32);
            fleet.remove_host(id);
            self.alive.retain(|(host, _)| *host != id);
            if chance.draw_below(5) > 0 {
                fleet.add_host(id, host(chance));
            }
        }
        if self.alive.is_empty() {
            return;
        }
        let place = chance.draw_below(self.alive.len());
        let (host, vm) = self.alive[place];
        let part = ResourceVector::of_vcpus(chance.draw_below(3) as u32);
        match chance.draw_below(10) {
            0 => fleet.mark_ending(host, vm),
            8 => fleet.set_yielded(
                host,
                vm,
                one(chance, &[YieldedRoom::Hibernating, YieldedRoom::All]),
            ),
            9 if fleet.parked_vms(host).any(|parked| parked == vm) => fleet.unpark_vm(host, vm),
            9 => fleet.park_vm(host, vm, part),
            1 => fleet.set_charged_since(host, vm, None),
            2 => fleet.release_room(host, vm, part),
            3 => drop(fleet.take_room(host, vm, part)),
            4 | 5 => fleet.set_charged_since(host, vm, Some(self.now)),
            _ => {
                fleet.remove(host, vm);
                self.alive.swap_remove(place);
            }
        }
    }

    /// Requests a VM; returns how many VMs had to end, or `None` if there was no host for it.
    fn decide(&mut self, what: &str) -> Option<usize> {
        let steps = match self.chance.draw_below(40) {
            0 => 10_000_000_000 / self.step.as_micros(),
            _ => self.chance.draw_below(180_000_000 / self.step.as_micros() as usize + 2) as u64,
        };
        self.now += self.step.times(steps);
        let (vcpus, memory, disk) = one(&mut self.chance, &SIZES);
        let market = one(&mut self.chance, &[Market::Spot, Market::Spot, Market::OnDemand]);
        let want = PlacementRequest { room: room(vcpus, memory, disk), market };
        let vm = VmId::new(self.next);
        self.next += 1;
        let stream = || RandomStream::new(7, "placement", vm.get().into());
        let kept = self.kept.choose_host(self.now, &want, &self.fleet, &mut stream());
        let plain = self.plain.choose_host(self.now, &want, &self.fleet, &mut stream());
        assert_eq!(kept, plain, "{what} at {}: {want:?} by {:?}", self.now, self.plain);
        let built = self.built.choose_host(self.now, &want, &self.fleet, &mut stream());
        assert_eq!(built, plain, "{what} at {}: {want:?} by {:?}", self.now, self.built);
        let (host, victims) = kept?;
        if self.chance.draw_below(8) > 0 {
            victims.iter().for_each(|vm| self.fleet.mark_ending(host, *vm));
            self.fleet.place_vm(host, vm, want.room, market);
            self.alive.push((host, vm));
            if self.chance.draw_below(4) > 0 {
                self.fleet.set_charged_since(host, vm, Some(self.now));
            }
            // Some victims leave at once, the others later.
            for vm in victims.iter().filter(|_| self.chance.draw_below(3) > 0) {
                self.fleet.remove(host, *vm);
                self.alive.retain(|(_, other)| other != vm);
            }
        }
        Some(victims.len())
    }
}

fn host(chance: &mut RandomStream) -> ResourceVector {
    match chance.draw_below(6) {
        0 => room(16, 40_000, 170),
        1 => room(4, 16_000, 500),
        _ => room(8, 16_000, 1_000),
    }
}

/// Makes decisions in `worlds` worlds of at most `hosts` hosts; returns how many decisions found no
/// host, and how many ended 0, 1, ... and 8 or more VMs.
fn agree(worlds: u64, hosts: usize, decisions: usize) -> (usize, [usize; 9]) {
    let (mut refused, mut chosen) = (0, [0; 9]);
    for seed in 0..worlds {
        let mut world = World::new(seed, 1 + (seed as usize * 7 + hosts - 1) % hosts);
        for n in 0..decisions {
            for _ in 0..world.chance.draw_below(3) {
                world.disturb();
            }
            match world.decide(&format!("seed {seed}, decision {n}")) {
                Some(victims) => chosen[victims.min(8)] += 1,
                None => refused += 1,
            }
        }
    }
    (refused, chosen)
}

/// Factor for the number of worlds: optimized builds, which are fast, make a million decisions.
const TIMES: u64 = if cfg!(debug_assertions) { 1 } else { 50 };

#[test]
fn the_order_that_is_kept_gives_what_a_look_at_all_hosts_does() {
    let (refused, chosen) = agree(100 * TIMES, 12, 200);
    assert!(refused > 1_000 && chosen[0] > 5_000 && chosen[1] > 1_000, "{refused} {chosen:?}");
    assert!(chosen[2] > 100 && chosen[3] > 30, "{chosen:?}");
}

#[test]
fn so_it_does_with_many_hosts() {
    let (_, chosen) = agree(2 * TIMES, 700, 1_500);
    assert!(chosen[0] > 1_000, "{chosen:?}");
}
