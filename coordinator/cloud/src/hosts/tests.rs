//! The rules against the plainest ways to say what they choose.
#![expect(clippy::cast_possible_truncation, reason = "draws below small numbers")]

mod agreement;
mod selection;

use dormouse_units::{Bytes, HostId, Stream, Time, VmId};

use crate::{Fleet, Host, Market, Placement, PlacerName, Placing, Want};

fn choose(rule: PlacerName, want: &Want, fleet: &Fleet) -> Option<Placing> {
    let mut chance = Stream::new(1, "placement", 0);
    Placement::Named(rule).placer().choose(Time::ZERO, want, fleet, &mut chance)
}

fn room(vcpus: u32, memory: u64, disk: u64) -> Host {
    let (memory, disk) = (Bytes::new(memory), Bytes::new(disk));
    Host { memory, disk, ..Host::of_vcpus(vcpus) }
}

fn drawn(chance: &mut Stream, most: usize) -> Host {
    let mut one = || chance.below(most) as u32;
    room(one(), one().into(), one().into())
}

/// A few hosts with VMs on them; some of these are being ended already.
fn fleet(chance: &mut Stream) -> Fleet {
    let mut fleet = Fleet::default();
    let mut next = 0;
    for host in (0..1 + chance.below(4) as u32).map(HostId::new) {
        fleet.join(host, drawn(chance, 14));
        for _ in 0..chance.below(7) {
            let size = drawn(chance, 5);
            if !fleet.free(host).holds(&size) {
                continue;
            }
            let vm = VmId::new(next);
            next += 1;
            let market = if chance.below(3) == 0 { Market::OnDemand } else { Market::Spot };
            assert!(fleet.place(host, vm, size, market));
            if chance.below(6) == 0 {
                fleet.ends(host, vm);
            }
        }
    }
    fleet
}

/// Least number of the host's spot VMs that make room, found by trying every subset.
fn brute(fleet: &Fleet, host: HostId, want: &Host) -> Option<u32> {
    let vms: Vec<_> = fleet.preemptible(host).collect();
    let enough = |set: &u32| {
        let freed = |n: &usize| set & (1 << n) != 0;
        let sum = (0..vms.len()).filter(freed).fold(fleet.free(host), |sum, n| sum.with(&vms[n].1));
        sum.holds(want)
    };
    (0..1_u32 << vms.len()).filter(enough).map(u32::count_ones).min()
}

#[test]
fn placers_choose_what_brute_force_does() {
    let mut chance = Stream::new(1, "fleets", 0);
    let (mut placed, mut preempted, mut refused) = (0, [0; 8], 0);
    for case in 0..10_000 {
        let fleet = fleet(&mut chance);
        let market = if chance.below(4) == 0 { Market::Spot } else { Market::OnDemand };
        let want = Want { room: drawn(&mut chance, 9), market };
        let choose = |rule| choose(rule, &want, &fleet);
        let what = format!("case {case}: {want:?} on {fleet:?}");

        let vcpus = |id: &HostId| fleet.free(*id).vcpus;
        let fit = || fleet.ids().filter(|id| fleet.free(*id).holds(&want.room));
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
        let best = fleet.ids().filter_map(|id| Some((brute(&fleet, id, &want.room)?, id))).min();
        match (chosen, best) {
            (Some((host, victims)), Some((number, first))) => {
                assert_eq!((victims.len(), host), (number as usize, first), "{what}");
                let theirs: Vec<_> = fleet.preemptible(host).collect();
                let sum = victims.iter().fold(fleet.free(host), |sum, vm| {
                    sum.with(&theirs.iter().find(|(id, _)| id == vm).expect("a spot VM there").1)
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
    let (host, mut fleet) = (HostId::new(0), Fleet::default());
    fleet.join(host, room(8, 80, 800));
    let [a, b, c, d] = [0, 1, 2, 3].map(VmId::new);
    assert!(fleet.place(host, a, room(4, 40, 400), Market::Spot));
    assert!(fleet.place(host, b, room(3, 30, 300), Market::Spot));
    assert_eq!(
        choose(
            PlacerName::Preempting,
            &Want { room: room(5, 50, 500), market: Market::OnDemand },
            &fleet
        ),
        Some((host, vec![a]))
    );
    fleet.ends(host, a);
    assert!(!fleet.place(host, c, room(5, 50, 500), Market::OnDemand));
    assert_eq!(fleet.free(host), Host::NONE, "what is free is kept for it");
    // VM `a` freezes first: its vCPUs are free, and taken at once.
    fleet.release(host, a, room(4, 0, 0));
    assert_eq!((fleet.free(host), fleet.placed()), (Host::NONE, vec![]));
    assert!(!fleet.take(host, a, room(4, 0, 0)));
    fleet.remove(host, a);
    assert_eq!((fleet.free(host), fleet.placed()), (Host::NONE, vec![c]));
    assert_eq!(fleet.held(host, c), room(5, 50, 500));
    // A VM that gives up waiting leaves the room it had got to the next one.
    fleet.ends(host, b);
    assert!(!fleet.place(host, d, room(2, 20, 200), Market::OnDemand));
    fleet.remove(host, d);
    fleet.remove(host, b);
    assert_eq!((fleet.free(host), fleet.placed()), (room(3, 30, 300), vec![]));
    assert_eq!(fleet.leave(host), [c]);
    assert_eq!(fleet.free(host), Host::NONE);
}
