//! Compares the placement rules with the simplest code that makes the same choices.
#![expect(clippy::cast_possible_truncation, reason = "draws below small numbers")]

mod agreement;
mod selection;

use dormouse_units::{Bytes, HostId, RandomStream, Time, VmId};

use crate::{HostFleet, Market, Placement, PlacementRequest, PlacerName, Placing, ResourceVector};

fn choose(rule: PlacerName, want: &PlacementRequest, fleet: &HostFleet) -> Option<Placing> {
    let mut chance = RandomStream::new(1, "placement", 0);
    Placement::Named(rule).make_placer().choose_host(Time::ZERO, want, fleet, &mut chance)
}

fn room(vcpus: u32, memory: u64, disk: u64) -> ResourceVector {
    let (memory, disk) = (Bytes::new(memory), Bytes::new(disk));
    ResourceVector { memory, disk, ..ResourceVector::of_vcpus(vcpus) }
}

fn drawn(chance: &mut RandomStream, most: usize) -> ResourceVector {
    let mut one = || chance.draw_below(most) as u32;
    room(one(), one().into(), one().into())
}

/// A few hosts with VMs on them; some of the VMs are being ended already.
fn fleet(chance: &mut RandomStream) -> HostFleet {
    let mut fleet = HostFleet::default();
    let mut next = 0;
    for host in (0..1 + chance.draw_below(4) as u32).map(HostId::new) {
        fleet.add_host(host, drawn(chance, 14));
        for _ in 0..chance.draw_below(7) {
            let size = drawn(chance, 5);
            if !fleet.free_room(host).holds(&size) {
                continue;
            }
            let vm = VmId::new(next);
            next += 1;
            let market = if chance.draw_below(3) == 0 { Market::OnDemand } else { Market::Spot };
            assert!(fleet.place_vm(host, vm, size, market));
            if chance.draw_below(6) == 0 {
                fleet.mark_ending(host, vm);
            }
        }
    }
    fleet
}

/// Least number of the host's spot VMs that make room, found by trying every subset.
fn brute(fleet: &HostFleet, host: HostId, want: &ResourceVector) -> Option<u32> {
    let vms: Vec<_> = fleet.preemptible_vms(host).collect();
    let enough = |set: &u32| {
        let freed = |n: &usize| set & (1 << n) != 0;
        let sum = (0..vms.len())
            .filter(freed)
            .fold(fleet.free_room(host), |sum, n| sum.plus_room(&vms[n].1));
        sum.holds(want)
    };
    (0..1_u32 << vms.len()).filter(enough).map(u32::count_ones).min()
}

#[test]
fn placers_choose_what_brute_force_does() {
    let mut chance = RandomStream::new(1, "fleets", 0);
    let (mut placed, mut preempted, mut refused) = (0, [0; 8], 0);
    for case in 0..10_000 {
        let fleet = fleet(&mut chance);
        let market = if chance.draw_below(4) == 0 { Market::Spot } else { Market::OnDemand };
        let want = PlacementRequest { room: drawn(&mut chance, 9), market };
        let choose = |rule| choose(rule, &want, &fleet);
        let what = format!("case {case}: {want:?} on {fleet:?}");

        let vcpus = |id: &HostId| fleet.free_room(*id).vcpus;
        let fit = || fleet.host_ids().filter(|id| fleet.free_room(*id).holds(&want.room));
        let most = fit().max_by_key(|id| (vcpus(id), std::cmp::Reverse(*id)));
        let least = fit().min_by_key(|id| (vcpus(id), *id));
        assert_eq!(choose(PlacerName::Spread), most.map(|id| (id, Vec::new())), "{what}");
        assert_eq!(choose(PlacerName::Pack), least.map(|id| (id, Vec::new())), "{what}");

        let chosen = choose(PlacerName::Preempting);
        if most.is_some() || market == Market::Spot {
            assert_eq!(chosen, most.map(|id| (id, Vec::new())), "{what}");
            placed += 1;
            continue;
        }
        let best =
            fleet.host_ids().filter_map(|id| Some((brute(&fleet, id, &want.room)?, id))).min();
        match (chosen, best) {
            (Some((host, victims)), Some((number, first))) => {
                assert_eq!((victims.len(), host), (number as usize, first), "{what}");
                let theirs: Vec<_> = fleet.preemptible_vms(host).collect();
                let sum = victims.iter().fold(fleet.free_room(host), |sum, vm| {
                    sum.plus_room(
                        &theirs.iter().find(|(id, _)| id == vm).expect("a spot VM there").1,
                    )
                });
                assert!(sum.holds(&want.room), "{what}");
                preempted[number as usize] += 1;
            }
            (None, None) => refused += 1,
            other => panic!("{other:?}: {what}"),
        }
    }
    assert!(placed > 1_000 && refused > 1_000 && preempted[1] > 100 && preempted[3] > 10);
}

#[test]
fn who_waits_has_the_room_that_others_leave_before_anybody_else() {
    let (host, mut fleet) = (HostId::new(0), HostFleet::default());
    fleet.add_host(host, room(8, 80, 800));
    let [a, b, c, d] = [0, 1, 2, 3].map(VmId::new);
    assert!(fleet.place_vm(host, a, room(4, 40, 400), Market::Spot));
    assert!(fleet.place_vm(host, b, room(3, 30, 300), Market::Spot));
    assert_eq!(
        choose(
            PlacerName::Preempting,
            &PlacementRequest { room: room(5, 50, 500), market: Market::OnDemand },
            &fleet
        ),
        Some((host, vec![a]))
    );
    fleet.mark_ending(host, a);
    assert!(!fleet.place_vm(host, c, room(5, 50, 500), Market::OnDemand));
    assert_eq!(fleet.free_room(host), ResourceVector::NONE, "what is free is kept for it");
    // VM `a` freezes first: its vCPUs are free, and taken at once.
    fleet.release_room(host, a, room(4, 0, 0));
    assert_eq!((fleet.free_room(host), fleet.take_placed()), (ResourceVector::NONE, vec![]));
    assert!(!fleet.take_room(host, a, room(4, 0, 0)));
    fleet.remove(host, a);
    assert_eq!((fleet.free_room(host), fleet.take_placed()), (ResourceVector::NONE, vec![c]));
    assert_eq!(fleet.held_room(host, c), room(5, 50, 500));
    // A VM that gives up waiting leaves the room it had got to the next one.
    fleet.mark_ending(host, b);
    assert!(!fleet.place_vm(host, d, room(2, 20, 200), Market::OnDemand));
    fleet.remove(host, d);
    fleet.remove(host, b);
    assert_eq!((fleet.free_room(host), fleet.take_placed()), (room(3, 30, 300), vec![]));
    assert_eq!(fleet.remove_host(host), [c]);
    assert_eq!(fleet.free_room(host), ResourceVector::NONE);
}
