//! Choice of the spot VMs of a host that make room for another at the least cost.

use std::cmp::Reverse;

use dormouse_units::{Time, VmId};

use super::fleet::OccupiedHost;
use crate::{CostName, ResourceVector, VictimTies};

/// Exact search for the cheapest VMs of a host that make enough room. Its buffers are reused from
/// host to host.
#[derive(Debug, Default)]
pub(super) struct VictimSearch {
    /// VMs that can make room, grouped by room, the cheapest of each group first.
    all: Vec<VictimCandidate>,
    /// Groups of VMs of equal room. Only the first (cheapest) VMs of each group have to be considered.
    groups: Vec<EqualRoomGroup>,
    /// Number of VMs chosen from each group.
    taken: Vec<usize>,
    best: Option<Total>,
    best_taken: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct VictimCandidate {
    vm: VmId,
    room: ResourceVector,
    cost: u64,
    /// True if the VM's cost grows with time.
    grows: bool,
    /// Position in the order that decides between equally good sets.
    place: usize,
}

/// VMs of equal room: the range of their indices from `from` to `until`, exclusive.
#[derive(Clone, Copy, Debug)]
struct EqualRoomGroup {
    from: usize,
    until: usize,
    room: ResourceVector,
    /// Sum of room over this and all later groups; `largest` is the largest room in every
    /// dimension, and `cheapest` the least cost of a VM among these groups.
    sum: ResourceVector,
    largest: ResourceVector,
    cheapest: u64,
}

/// Cost of a set of VMs, and a second number that decides at equal cost (lower is better): the
/// number of all VMs in the set, or of those whose cost grows with time.
type Total = (u64, u64);

/// Result that a search looks for: the least cost, or the VMs to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchGoal {
    /// The least cost and, among sets of VMs of that cost, the least number of VMs whose cost grows
    /// with time, if that is at most `growing`.
    Cost { growing: u64 },
    /// The VMs to end: the fewest at the least cost, and among such sets the first in order.
    Set,
}

impl VictimSearch {
    /// Loads the VMs of this host that can be ended.
    pub(super) fn look_at(&mut self, host: &OccupiedHost, cost: CostName, now: Time) {
        self.all.clear();
        self.all.extend(host.preemptible_vms().map(|(vm, held)| VictimCandidate {
            vm,
            room: held.yielded_room(),
            cost: cost.ending_cost(held.since, now),
            grows: cost.grows_with_time() && held.since.is_some(),
            place: 0,
        }));
    }

    /// Least cost of freeing the missing room, and the number of VMs (at most `growing`) whose cost
    /// grows with time; `None`: not enough room can be freed.
    pub(super) fn least_cost(
        &mut self,
        lacks: &ResourceVector,
        growing: Option<u64>,
    ) -> Option<Total> {
        self.all.sort_unstable_by_key(|one| (Reverse(one.room), one.cost, one.grows));
        self.search_sets(lacks, SearchGoal::Cost { growing: growing.unwrap_or(u64::MAX) });
        self.best
    }

    /// VMs to end to free the missing room, ordered by `ties`; `None`: not enough room can be freed.
    pub(super) fn select_victims(
        &mut self,
        lacks: &ResourceVector,
        ties: VictimTies,
    ) -> Option<Vec<VmId>> {
        match ties {
            VictimTies::Oldest => self.all.sort_unstable_by_key(|one| one.vm),
            VictimTies::Largest => {
                self.all.sort_unstable_by_key(|one| Reverse((one.room, one.vm)));
            }
        }
        self.all.iter_mut().enumerate().for_each(|(place, one)| one.place = place);
        self.all.sort_unstable_by_key(|one| (Reverse(one.room), one.cost, one.place));
        self.search_sets(lacks, SearchGoal::Set);
        self.best?;
        let places = self.list_places(&self.best_taken);
        self.all.sort_unstable_by_key(|one| one.place);
        Some(places.into_iter().map(|place| self.all[place].vm).collect())
    }

    fn search_sets(&mut self, lacks: &ResourceVector, goal: SearchGoal) {
        self.groups.clear();
        let mut from = 0;
        for alike in self.all.chunk_by(|a, b| a.room == b.room) {
            let (until, room, cheapest) = (from + alike.len(), alike[0].room, alike[0].cost);
            let sum = room.times_room(u32::try_from(alike.len()).unwrap_or(u32::MAX));
            self.groups.push(EqualRoomGroup { from, until, room, sum, largest: room, cheapest });
            from = until;
        }
        for n in (1..self.groups.len()).rev() {
            let after = self.groups[n];
            let group = &mut self.groups[n - 1];
            group.sum = group.sum.plus_room(&after.sum);
            group.largest = group.largest.larger_of(&after.largest);
            group.cheapest = group.cheapest.min(after.cheapest);
        }
        self.taken.clear();
        self.taken.resize(self.groups.len(), 0);
        self.best = None;
        self.descend_from(0, *lacks, (0, 0), goal);
    }

    /// Tries all sets of VMs from group `n` (VMs of equal room) on, in addition to the VMs that are already chosen.
    fn descend_from(
        &mut self,
        n: usize,
        mut lacks: ResourceVector,
        (mut cost, mut second): Total,
        goal: SearchGoal,
    ) {
        if lacks == ResourceVector::NONE {
            self.taken[n..].fill(0);
            return self.note_set((cost, second), goal);
        }
        let Some(&group) = self.groups.get(n) else { return };
        if !group.sum.holds(&lacks) || self.is_worse(&group, &lacks, (cost, second), goal) {
            return;
        }
        for place in group.from..=group.until {
            self.taken[n] = place - group.from;
            self.descend_from(n + 1, lacks, (cost, second), goal);
            let less = lacks.minus_room(&group.room);
            // A set that is enough is better than all larger ones.
            if lacks == ResourceVector::NONE || less == lacks || place == group.until {
                break;
            }
            let one = &self.all[place];
            cost = cost.saturating_add(one.cost);
            second += match goal {
                SearchGoal::Cost { growing } if one.grows && second >= growing => break,
                SearchGoal::Cost { .. } => u64::from(one.grows),
                SearchGoal::Set => 1,
            };
            lacks = less;
        }
    }

    /// True if no set of VMs from the remaining groups of VMs can be better than the best set found so far.
    fn is_worse(
        &self,
        rest: &EqualRoomGroup,
        lacks: &ResourceVector,
        (cost, second): Total,
        goal: SearchGoal,
    ) -> bool {
        let Some(best) = self.best else { return false };
        let more = rest.largest.how_often_in(lacks);
        let cost = cost.saturating_add(rest.cheapest.saturating_mul(more));
        match goal {
            SearchGoal::Cost { .. } => (cost, second) >= best,
            SearchGoal::Set => (cost, second + more) > best,
        }
    }

    fn note_set(&mut self, total: Total, goal: SearchGoal) {
        let is_better = self.best.is_none_or(|best| {
            let is_before = || self.list_places(&self.taken) < self.list_places(&self.best_taken);
            total < best || total == best && goal == SearchGoal::Set && is_before()
        });
        if is_better {
            self.best = Some(total);
            self.best_taken.clone_from(&self.taken);
        }
    }

    /// Positions, in the order that decides between equally good sets, of the VMs of a set; ascending.
    fn list_places(&self, taken: &[usize]) -> Vec<usize> {
        let of_group = |(group, n): (&EqualRoomGroup, &usize)| {
            self.all[group.from..group.from + n].iter().map(|one| one.place)
        };
        let mut places: Vec<_> = self.groups.iter().zip(taken).flat_map(of_group).collect();
        places.sort_unstable();
        places
    }
}
