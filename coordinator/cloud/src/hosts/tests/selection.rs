//! Tests of the choice of VMs that end: by the tables of the OPIE paper, and by a search through every set of VMs.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::cmp::Reverse;

use super::{drawn, room};
use crate::hosts::victims::VictimSearch;
use crate::tables::{HostTable, TABLES};
use crate::{
    CostName, HostFleet, Market, PlacementRule, ResourceVector, VictimTies, Weigher, YieldedRoom,
};
use dormouse_units::{HostId, RandomStream, Span, Time, VmId};

/// VMs that end on the hosts of each of the OPIE paper's tables under this rule, whatever the seed,
/// and the sum of their costs in minutes.
fn selected(rule: &PlacementRule) -> Vec<(Vec<String>, u64)> {
    let of_table = |(_, text): (&str, &str)| {
        let table = HostTable::read(text).unwrap();
        let under = |seed| {
            let chosen =
                table.select_victims(rule.clone(), &mut RandomStream::new(seed, "tables", 0));
            let names = chosen.iter().map(|vm| vm.name.clone()).collect();
            (names, chosen.iter().map(|vm| vm.ending_cost()).sum())
        };
        assert!((2..50).all(|seed| under(seed) == under(1)));
        under(1)
    };
    TABLES.into_iter().map(of_table).collect()
}

fn expected(sets: [(&str, u64); 4]) -> Vec<(Vec<String>, u64)> {
    sets.map(|(names, cost)| (names.split('+').map(str::to_owned).collect(), cost)).into()
}

#[test]
fn the_tables_of_the_paper_end_the_vms_that_are_marked_there() {
    let chosen = selected(&PlacementRule::default());
    assert_eq!(chosen, expected([("BP1", 11), ("CP1", 1), ("AP2+AP3+AP4", 55), ("BP3", 20)]));
    for ((_, text), (chosen, _)) in TABLES.iter().zip(chosen) {
        let table = HostTable::read(text).unwrap();
        let marked = table.instances.iter().filter(|vm| vm.is_marked);
        assert_eq!(marked.map(|vm| vm.name.clone()).collect::<Vec<_>>(), chosen);
    }
}

/// Algorithm 4 of the OPIE paper counts all preemptible VMs of a host, and not only the VMs that have to end.
#[test]
fn the_sum_as_algorithm_4_is_written_ends_others_where_sizes_differ() {
    let weighers = vec![Weigher::Overcommit.weighed_once(), Weigher::TotalCost.weighed_once()];
    let chosen = selected(&PlacementRule { weighers, ..PlacementRule::default() });
    assert_eq!(chosen, expected([("BP1", 11), ("CP1", 1), ("BP1", 58), ("AP1", 52)]));
}

/// The best of all sets of these VMs that free enough room: the set with the least cost, then the
/// fewest, then the first in the order of `ties`.
fn brute(
    vms: &[(VmId, ResourceVector, u64)],
    lacks: &ResourceVector,
    ties: VictimTies,
) -> Option<(u64, usize, Vec<usize>, Vec<VmId>)> {
    let mut vms = vms.to_vec();
    match ties {
        VictimTies::Oldest => vms.sort_by_key(|(vm, ..)| *vm),
        VictimTies::Largest => vms.sort_by_key(|(vm, room, _)| Reverse((*room, *vm))),
    }
    let sets = (0..1_u32 << vms.len()).filter_map(|set| {
        let places: Vec<_> = (0..vms.len()).filter(|n| set & (1 << n) != 0).collect();
        let freed = places.iter().fold(ResourceVector::NONE, |sum, n| sum.plus_room(&vms[*n].1));
        let cost = places.iter().map(|n| vms[*n].2).sum();
        let ids = places.iter().map(|n| vms[*n].0).collect();
        freed.holds(lacks).then_some((cost, places.len(), places, ids))
    });
    sets.min()
}

#[test]
fn the_cheapest_set_of_all_is_selected() {
    let mut chance = RandomStream::new(1, "selection", 0);
    let (mut found, mut none, mut victims) = ([0; 9], 0, VictimSearch::default());
    for case in 0..100_000 {
        let (mut fleet, id, now) = (HostFleet::default(), HostId::new(0), Time::from_secs(36_000));
        fleet.add_host(id, room(60, 60, 60));
        // Few sizes or many, in all three dimensions; few costs or many.
        let (most, minutes) = ([2, 3, 6][chance.draw_below(3)], [3, 20, 300][chance.draw_below(3)]);
        for vm in 0..chance.draw_below(9) as u32 {
            fleet.place_vm(id, VmId::new(vm), drawn(&mut chance, most), Market::Spot);
            let age = Span::from_secs(60 * chance.draw_below(minutes) as u64);
            let since = Time::from_secs(36_000 - age.as_micros() / 1_000_000);
            fleet.set_charged_since(id, VmId::new(vm), (chance.draw_below(8) > 0).then_some(since));
            if chance.draw_below(5) == 0 {
                fleet.set_yielded(id, VmId::new(vm), YieldedRoom::Hibernating);
            }
        }
        let (host, lacks) = (fleet.host_by_id(id).unwrap(), drawn(&mut chance, 9));
        let cost = [CostName::Period, CostName::Age, CostName::Number][chance.draw_below(3)];
        let ties = [VictimTies::Oldest, VictimTies::Largest][chance.draw_below(2)];
        let cost_of = |since| cost.ending_cost(since, now);
        let priced =
            host.preemptible_vms().map(|(vm, held)| (vm, held.yielded_room(), cost_of(held.since)));
        let right = brute(&priced.collect::<Vec<_>>(), &lacks, ties);
        victims.look_at(host, cost, now);
        let least = victims.least_cost(&lacks, None).map(|(cost, _)| cost);
        assert_eq!(least, right.as_ref().map(|(cost, ..)| *cost), "case {case}");
        let selected = victims.select_victims(&lacks, ties);
        let what = format!("case {case}: {lacks:?} of {fleet:?}");
        assert_eq!(selected, right.map(|(.., ids)| ids), "{what}");
        match selected {
            Some(set) => found[set.len()] += 1,
            None => none += 1,
        }
    }
    assert!(none > 10_000 && found[1] > 3_000 && found[2] > 5_000 && found[5] > 1_000, "{found:?}");
}
