//! Which VMs end: the tables of the paper, and every set there is.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::cmp::Reverse;

use super::{drawn, room};
use crate::hosts::victims::Victims;
use crate::{
    CostName, Fleet, Host, Market, PlacementRule, Placer, Scheduler, VictimTies, Want, Yields,
};
use dormouse_units::{HostId, Span, Stream, Time, VmId};

/// The paper's sizes.
fn size(name: &str) -> Host {
    match name {
        "S" => room(1, 2_000, 20),
        "M" => room(2, 4_000, 40),
        "L" => room(4, 8_000, 80),
        other => panic!("no size {other}"),
    }
}

/// What the default rule ends on the hosts of a table for the VM that it asks for, by name, and for
/// which minutes.
fn selected(table: &str) -> (Vec<&str>, u64) {
    let now = Time::from_secs(600 * 60);
    let (mut fleet, mut names, mut hosts, mut asked) = (Fleet::default(), vec![], vec![], None);
    for row in table.lines().filter(|row| !row.starts_with('#')).skip(1) {
        let cells: Vec<_> = row.split(',').collect();
        let [host, name, market, kind, minutes] = cells[..] else { panic!("{row}") };
        if market == "request" {
            asked = Some(Want { room: size(kind), market: Market::OnDemand });
            continue;
        }
        if !hosts.contains(&host) {
            fleet.join(HostId::new(hosts.len() as u32), room(8, 16_000, 1_000));
            hosts.push(host);
        }
        let id = HostId::new(hosts.iter().position(|other| *other == host).unwrap() as u32);
        let market = if market == "preemptible" { Market::Spot } else { Market::OnDemand };
        let (vm, age) = (VmId::new(names.len() as u32), minutes.parse::<u64>().unwrap());
        assert!(fleet.place(id, vm, size(kind), market), "{row}");
        fleet.charged(id, vm, Some(Time::from_secs(60 * (600 - age))));
        names.push((name, age % 60));
    }
    let mut scheduler = Scheduler::new(PlacementRule::default());
    let chosen = scheduler.choose(now, &asked.unwrap(), &fleet, &mut Stream::new(1, "tables", 0));
    let victims = chosen.unwrap().1;
    let of = |vm: &VmId| names[vm.get() as usize];
    (victims.iter().map(|vm| of(vm).0).collect(), victims.iter().map(|vm| of(vm).1).sum())
}

#[test]
fn the_tables_of_the_paper_end_the_vms_that_are_marked_there() {
    let table = |text| selected(text);
    let chosen = [
        table(include_str!("tables/same-sizes-1.csv")),
        table(include_str!("tables/same-sizes-2.csv")),
        table(include_str!("tables/several-sizes-1.csv")),
        table(include_str!("tables/several-sizes-2.csv")),
    ];
    let marked =
        [(vec!["BP1"], 11), (vec!["CP1"], 1), (vec!["AP2", "AP3", "AP4"], 55), (vec!["BP3"], 20)];
    assert_eq!(chosen, marked);
}

/// The best of all sets of these VMs that have enough: the least cost, then the fewest, then the first
/// in the order of `ties`.
fn brute(
    vms: &[(VmId, Host, u64)],
    lacks: &Host,
    ties: VictimTies,
) -> Option<(u64, usize, Vec<usize>, Vec<VmId>)> {
    let mut vms = vms.to_vec();
    match ties {
        VictimTies::Oldest => vms.sort_by_key(|(vm, ..)| *vm),
        VictimTies::Largest => vms.sort_by_key(|(vm, room, _)| Reverse((*room, *vm))),
    }
    let sets = (0..1_u32 << vms.len()).filter_map(|set| {
        let places: Vec<_> = (0..vms.len()).filter(|n| set & (1 << n) != 0).collect();
        let freed = places.iter().fold(Host::NONE, |sum, n| sum.with(&vms[*n].1));
        let cost = places.iter().map(|n| vms[*n].2).sum();
        let ids = places.iter().map(|n| vms[*n].0).collect();
        freed.holds(lacks).then_some((cost, places.len(), places, ids))
    });
    sets.min()
}

#[test]
fn the_cheapest_set_of_all_is_selected() {
    let mut chance = Stream::new(1, "selection", 0);
    let (mut found, mut none, mut victims) = ([0; 9], 0, Victims::default());
    for case in 0..100_000 {
        let (mut fleet, id, now) = (Fleet::default(), HostId::new(0), Time::from_secs(36_000));
        fleet.join(id, room(60, 60, 60));
        // Few sizes or many, in all three dimensions; few costs or many.
        let (most, minutes) = ([2, 3, 6][chance.below(3)], [3, 20, 300][chance.below(3)]);
        for vm in 0..chance.below(9) as u32 {
            fleet.place(id, VmId::new(vm), drawn(&mut chance, most), Market::Spot);
            let age = Span::from_secs(60 * chance.below(minutes) as u64);
            let since = Time::from_secs(36_000 - age.as_micros() / 1_000_000);
            fleet.charged(id, VmId::new(vm), (chance.below(8) > 0).then_some(since));
            if chance.below(5) == 0 {
                fleet.yields(id, VmId::new(vm), Yields::Hibernating);
            }
        }
        let (host, lacks) = (fleet.host(id).unwrap(), drawn(&mut chance, 9));
        let cost = [CostName::Period, CostName::Age, CostName::Number][chance.below(3)];
        let ties = [VictimTies::Oldest, VictimTies::Largest][chance.below(2)];
        let cost_of = |since| cost.of(since, now);
        let priced = host.preemptible().map(|(vm, held)| (vm, held.yielded(), cost_of(held.since)));
        let right = brute(&priced.collect::<Vec<_>>(), &lacks, ties);
        victims.look_at(host, cost, now);
        let least = victims.least(&lacks, None).map(|(cost, _)| cost);
        assert_eq!(least, right.as_ref().map(|(cost, ..)| *cost), "case {case}");
        let selected = victims.select(&lacks, ties);
        let what = format!("case {case}: {lacks:?} of {fleet:?}");
        assert_eq!(selected, right.map(|(.., ids)| ids), "{what}");
        match selected {
            Some(set) => found[set.len()] += 1,
            None => none += 1,
        }
    }
    assert!(none > 10_000 && found[1] > 3_000 && found[2] > 5_000 && found[5] > 1_000, "{found:?}");
}
