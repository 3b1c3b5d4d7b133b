//! Room for on-demand VMs at the expense of spot VMs.

use std::collections::BTreeMap;

use dormouse_units::{HostId, VmId};

use crate::{Fleet, Host, Market, Placer, Spread, Want};

/// As [`Spread`]; but an on-demand VM for which no host has room goes where ending the fewest spot
/// VMs makes it, on the host with the lowest id among equals. Of spot VMs that take the same, those
/// launched last end: they have done least.
#[derive(Clone, Copy, Debug)]
pub struct Preempting;

impl Placer for Preempting {
    fn choose(&self, want: &Want, fleet: &Fleet) -> Option<(HostId, Vec<VmId>)> {
        let spread = Spread.choose(want, fleet);
        if spread.is_some() || want.market == Market::Spot {
            return spread;
        }
        let mut best: Option<(HostId, Vec<VmId>)> = None;
        for host in fleet.ids() {
            let most = best.as_ref().map_or(usize::MAX, |(_, victims)| victims.len() - 1);
            let lacks = want.room.without(&fleet.free(host));
            if let Some(victims) = fewest(&lacks, fleet.preemptible(host), most) {
                best = Some((host, victims));
            }
        }
        best
    }
}

/// The fewest of these VMs, at most `most`, that hold what is lacking together.
fn fewest(lacks: &Host, vms: impl Iterator<Item = (VmId, Host)>, most: usize) -> Option<Vec<VmId>> {
    // There are many VMs and few sizes: which of two alike it is changes nothing.
    let mut alike: BTreeMap<Host, Vec<VmId>> = BTreeMap::new();
    for (vm, room) in vms {
        alike.entry(room).or_default().push(vm);
    }
    let sizes: Vec<(Host, u32)> = alike
        .iter()
        .rev()
        .map(|(room, vms)| (*room, u32::try_from(vms.len()).unwrap_or(u32::MAX)))
        .collect();
    let all = sizes.iter().fold(Host::NONE, |sum, (room, n)| sum.with(&room.times(*n)));
    if !all.holds(lacks) {
        return None;
    }
    let total = alike.values().map(Vec::len).sum::<usize>().min(most);
    let mut counts = vec![0; sizes.len()];
    let enough = (1..=u32::try_from(total).unwrap_or(u32::MAX))
        .any(|number| covers(lacks, &sizes, number, &mut counts));
    enough.then(|| {
        let taken = |(vms, n): (&Vec<VmId>, &u32)| {
            vms.iter().rev().take(*n as usize).copied().collect::<Vec<_>>()
        };
        alike.values().rev().zip(&counts).flat_map(taken).collect()
    })
}

/// Whether `number` VMs of these sizes can hold what is lacking: how many of each is left in `counts`.
fn covers(lacks: &Host, sizes: &[(Host, u32)], number: u32, counts: &mut [u32]) -> bool {
    if *lacks == Host::NONE {
        counts.fill(0);
        return true;
    }
    let largest = sizes.iter().fold(Host::NONE, |most, (room, _)| most.largest(room));
    let (Some(((room, there), sizes)), Some((count, counts))) =
        (sizes.split_first(), counts.split_first_mut())
    else {
        return false;
    };
    if !largest.times(number).holds(lacks) {
        return false;
    }
    (0..=number.min(*there)).rev().any(|n| {
        *count = n;
        covers(&lacks.without(&room.times(n)), sizes, number - n, counts)
    })
}
