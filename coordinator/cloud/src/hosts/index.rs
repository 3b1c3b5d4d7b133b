//! Hosts ranked by weight for one kind of request; the ranking is updated as hosts change.
//!
//! Scores are kept for each host that passes the filters. They are constant until the host changes,
//! except for one, the *axis*: the cost of ending VMs grows with time. Hosts with equal other
//! scores whose costs grow with the same number of VMs form a class; their order within it, by the
//! offset of the cost, is constant. So the best host of all is the first or last of a class, and so
//! are the lowest and the highest of every score.

use std::collections::BTreeMap;

use dormouse_units::{ById, HostId, RandomStream, Span, Time};

use super::cost::{LinearCost, signed_micros};
use super::fleet::OccupiedHost;
use super::plain::{Pass, RoomView};
use super::ranked::RankedHosts;
use super::victims::VictimSearch;
use super::weigh::{ScoreRanges, Scores, WEIGHERS};
use crate::{CostName, HostFleet, PlacementRequest, ScaledWeigher, TieBreak, Weigher};

/// Ranking of the hosts for requests of one kind.
#[derive(Debug)]
pub(super) struct HostIndex {
    want: PlacementRequest,
    view: RoomView,
    weighers: Vec<ScaledWeigher>,
    /// Index in `weighers` of the axis, the weigher whose score orders the hosts of a class: the weigher of costs if there is one;
    /// `None` without weighers.
    axis: Option<usize>,
    cost: CostName,
    /// Number of fleet changes already included; `None`: the fleet was not read yet.
    seen: Option<usize>,
    /// Hosts that were examined, each with its entry in the ranking; `None` for a host without room.
    hosts: ById<HostId, Option<IndexedHost>>,
    classes: Vec<WeightClass>,
    /// Index in `classes` of each class (hosts with equal steady scores) that has hosts, by the key of the class.
    places: BTreeMap<Key, usize>,
    /// Indices of empty classes in `classes`, for reuse.
    spare: Vec<usize>,
    /// Times at which the linear cost of making room on a host changes, by [`time_slot`]; a time
    /// that differs from the one in the host's entry is stale.
    due: BTreeMap<u64, Vec<(Time, HostId)>>,
    /// Number of entries in `due`, outdated ones included.
    dues: usize,
    victims: VictimSearch,
}

/// Key of a class of hosts: the hosts' scores, except that of the weigher by which the class is ordered, and the number of VMs
/// whose costs grow with time.
type Key = (Scores, i64);

#[derive(Debug)]
struct WeightClass {
    key: Key,
    /// Hosts of the class, ordered by the constant part (offset) of their costs.
    hosts: RankedHosts,
}

#[derive(Clone, Copy, Debug)]
struct IndexedHost {
    class: usize,
    offset: i64,
    until: Option<Time>,
}

/// Hosts of equal weight, which are neighbours in the order of their class: `count` hosts after the
/// first `before` hosts.
struct EqualHosts<'a> {
    hosts: &'a RankedHosts,
    offset: i64,
    before: usize,
    count: usize,
}

/// Number of the slot of about a second (2^20 us) that contains an instant; times of changes are searched by slot.
const fn time_slot(time: Time) -> u64 {
    time.as_micros() >> 20
}

/// True if a ranking can be kept for these weighers: at most one score grows with time.
pub(super) fn is_kept(weighers: &[ScaledWeigher], cost: CostName) -> bool {
    let growing = weighers.iter().filter(|weighed| weighed.name.is_of_costs());
    weighers.len() <= WEIGHERS && (!cost.grows_with_time() || growing.count() <= 1)
}

impl HostIndex {
    pub(super) fn new(want: PlacementRequest, (view, weighers): Pass<'_>, cost: CostName) -> Self {
        let weighers: Vec<_> = weighers.iter().copied().filter(|one| one.multiplier != 0).collect();
        let by = |is_it: fn(Weigher) -> bool| weighers.iter().position(|one| is_it(one.name));
        // Among other scores, the one that differs most between hosts makes the fewest classes.
        let axis = by(Weigher::is_of_costs)
            .or_else(|| by(|name| name == Weigher::FreeMemory))
            .or_else(|| by(|name| name == Weigher::FreeVcpus))
            .or_else(|| weighers.len().checked_sub(1));
        Self {
            want,
            view,
            weighers,
            axis,
            cost,
            seen: None,
            hosts: ById::new(),
            classes: Vec::new(),
            places: BTreeMap::new(),
            spare: Vec::new(),
            due: BTreeMap::new(),
            dues: 0,
            victims: VictimSearch::default(),
        }
    }

    /// True if the ranking is for requests of this room under this view of the hosts.
    pub(super) fn is_for(&self, want: &PlacementRequest, view: RoomView) -> bool {
        self.want.room == want.room && self.view == view
    }

    /// The best host now; `None` if none passes the filters.
    pub(super) fn choose_host(
        &mut self,
        now: Time,
        fleet: &HostFleet,
        ties: TieBreak,
        chance: &mut RandomStream,
    ) -> Option<HostId> {
        self.take_in(now, fleet);
        // Among hosts that have room, no costs matter.
        let best = match self.free_hosts() {
            Some(free) => vec![free],
            None => {
                self.look_at_due(now, fleet);
                self.best_hosts(now)
            }
        };
        let number: usize = best.iter().map(|alike| alike.count).sum();
        let chosen = match (ties, number) {
            (TieBreak::Random, 2..) => chance.draw_below(number),
            _ => 0,
        };
        nth_host(&best, chosen).map(HostId::new)
    }

    /// Hosts that can take a VM without ending others, if these hosts certainly have the greatest
    /// weight; else `None`. That is certain if there are only two weighers: whether other VMs must
    /// end, and at what cost.
    fn free_hosts(&self) -> Option<EqualHosts<'_>> {
        let overcommit = self.weighers.iter().position(|one| one.name == Weigher::Overcommit)?;
        let is_rule = self.weighers.len() == 2
            && self.axis.is_some_and(|axis| {
                axis != overcommit && self.weighers[axis].name == Weigher::VictimCost
            })
            && self.weighers.iter().all(|one| one.multiplier > 0);
        let place = self.places.get(&([0; WEIGHERS], 0)).filter(|_| is_rule)?;
        Some(EqualHosts::new(&self.classes[*place].hosts, 0))
    }

    /// Updates the ranking with the changes of the fleet since the last call.
    fn take_in(&mut self, now: Time, fleet: &HostFleet) {
        match self.seen.and_then(|seen| fleet.changed_since(seen)) {
            Some(changed) => {
                for (n, id) in changed.iter().enumerate() {
                    if changed.get(n + 1) != Some(id) {
                        self.look_at(*id, fleet.host_by_id(*id), now);
                    }
                }
            }
            None => {
                self.hosts = ById::new();
                (self.classes, self.spare) = (Vec::new(), Vec::new());
                self.places.clear();
                self.due.clear();
                self.dues = 0;
                for (id, host) in fleet.hosts() {
                    // Every host gets its place, with room or without: it is found by its number.
                    self.hosts.insert(id, None);
                    self.look_at(id, Some(host), now);
                }
            }
        }
        self.seen = Some(fleet.change_count());
    }

    /// Re-examines the hosts whose cost of making room, a linear function of time, is another function from `now` on.
    fn look_at_due(&mut self, now: Time, fleet: &HostFleet) {
        while let Some(mut first) =
            self.due.first_entry().filter(|first| *first.key() <= time_slot(now))
        {
            let is_due = |due: &mut (Time, HostId)| due.0 <= now;
            let due: Vec<_> = first.get_mut().extract_if(.., is_due).collect();
            self.dues -= due.len();
            let is_over = first.get().is_empty();
            if is_over {
                first.remove();
            }
            for (at, id) in due {
                if self.make_entry(id).is_some_and(|entry| entry.until == Some(at)) {
                    self.look_at(id, fleet.host_by_id(id), now);
                }
            }
            if !is_over {
                break;
            }
        }
    }

    /// Moves a host to the class that fits its present scores; removes the host if it has left the
    /// fleet or has no room.
    fn look_at(&mut self, id: HostId, host: Option<&OccupiedHost>, now: Time) {
        let found = host.and_then(|host| self.score_host(host, now));
        let former = self.make_entry(id);
        let is_in_place = match (&former, &found) {
            (Some(entry), Some((key, line))) => {
                entry.offset == line.offset && self.classes[entry.class].key == *key
            }
            (None, None) => return,
            _ => false,
        };
        if let Some(entry) = former.filter(|_| !is_in_place) {
            self.take_out(id, entry);
        }
        let Some((key, line)) = found else {
            self.hosts.insert(id, None);
            return;
        };
        let class = match former.filter(|_| is_in_place) {
            Some(entry) => entry.class,
            None => self.put_in(id, key, line.offset),
        };
        self.hosts.insert(id, Some(IndexedHost { class, offset: line.offset, until: line.until }));
        if let Some(until) = line.until.filter(|_| former.and_then(|f| f.until) != line.until) {
            self.due.entry(time_slot(until)).or_default().push((until, id));
            self.dues += 1;
            // While some host is free, `due` is never looked at and only grows.
            if self.dues > 1_000 + 4 * self.hosts.len() {
                self.forget_dues();
            }
        }
    }

    /// Removes times from `due` at which no host's cost changes any more.
    fn forget_dues(&mut self) {
        let hosts = &self.hosts;
        let holds = |at: Time, id: &HostId| {
            hosts.get(id).copied().flatten().is_some_and(|entry| entry.until == Some(at))
        };
        self.due.retain(|_, due| {
            due.retain(|(at, id)| holds(*at, id));
            due.sort_unstable();
            due.dedup();
            !due.is_empty()
        });
        self.dues = self.due.values().map(Vec::len).sum();
    }

    fn make_entry(&self, id: HostId) -> Option<IndexedHost> {
        self.hosts.get(&id).copied().flatten()
    }

    fn take_out(&mut self, id: HostId, IndexedHost { class: place, offset, .. }: IndexedHost) {
        let class = &mut self.classes[place];
        class.hosts.remove((offset, id.get()));
        if class.hosts.is_empty() {
            self.places.remove(&class.key);
            self.spare.push(place);
        }
    }

    /// Adds a host to the class with this key; returns the index of the class.
    fn put_in(&mut self, id: HostId, key: Key, offset: i64) -> usize {
        let (classes, spare) = (&mut self.classes, &mut self.spare);
        let place = *self.places.entry(key).or_insert_with(|| {
            let class = WeightClass { key, hosts: RankedHosts::default() };
            match spare.pop() {
                Some(place) => {
                    classes[place] = class;
                    place
                }
                None => {
                    classes.push(class);
                    classes.len() - 1
                }
            }
        });
        classes[place].hosts.insert((offset, id.get()));
        place
    }

    /// Key of a host's class, and the linear cost of making room there; `None`: the host has no room.
    fn score_host(&mut self, host: &OccupiedHost, now: Time) -> Option<(Key, LinearCost)> {
        if !self.view.has_room(host, &self.want) {
            return None;
        }
        let (mut scores, mut axis): (Scores, _) = ([0; WEIGHERS], LinearCost::default());
        for (n, score) in scores.iter_mut().enumerate().take(self.weighers.len()) {
            let line = match self.weighers[n].name {
                Weigher::TotalCost => self.total_cost(host, now),
                Weigher::VictimCost => self.of_victims(host, now),
                steady => LinearCost {
                    offset: steady.steady_score(host, &self.want),
                    ..LinearCost::default()
                },
            };
            if self.axis == Some(n) {
                axis = line;
            } else {
                *score = line.offset;
            }
        }
        Some(((scores, axis.slope), axis))
    }

    fn total_cost(&self, host: &OccupiedHost, now: Time) -> LinearCost {
        let lines = host.preemptible_vms().map(|(_, held)| self.cost.cost_line(held.since, now));
        lines.fold(LinearCost::default(), |sum, line| sum.add_line(&line))
    }

    /// Cost of making room on a host, as a linear function of time that holds while the same VMs
    /// are the cheapest to end.
    fn of_victims(&mut self, host: &OccupiedHost, now: Time) -> LinearCost {
        if host.free.holds(&self.want.room) {
            return LinearCost::default();
        }
        let lacks = self.want.room.minus_room(&host.free);
        self.victims.look_at(host, self.cost, now);
        let Some((cost, growing)) = self.victims.least_cost(&lacks, None) else {
            return LinearCost::default();
        };
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let slope = signed(growing);
        let mut until = self.total_cost(host, now).until;
        // A set that costs more now but grows more slowly becomes the cheaper one later.
        for fewer in (0..growing).rev() {
            let Some((other, grows)) = self.victims.least_cost(&lacks, Some(fewer)) else { break };
            let ahead = (other - cost) / (growing - grows);
            until = Time::sooner_of(until, Some(now + Span::from_micros(ahead + 1)));
        }
        LinearCost { slope, offset: slope * signed_micros(now) - signed(cost), until }
    }

    /// The hosts of greatest weight.
    fn best_hosts(&self, now: Time) -> Vec<EqualHosts<'_>> {
        let classes = self.places.values().filter_map(|place| {
            let class = &self.classes[*place];
            Some((class, class.hosts.first()?.0, class.hosts.last()?.0))
        });
        let scores = |class: &WeightClass, offset: i64| {
            let (mut scores, slope) = class.key;
            if let Some(axis) = self.axis {
                scores[axis] = offset - slope * signed_micros(now);
            }
            scores
        };
        let mut ranges = ScoreRanges::NONE;
        for (class, first, last) in classes.clone() {
            ranges.include_scores(&scores(class, first));
            ranges.include_scores(&scores(class, last));
        }
        let is_first = self.axis.is_some_and(|axis| self.weighers[axis].multiplier < 0);
        let mut best = (i128::MIN, Vec::new());
        for (class, first, last) in classes {
            let offset = if is_first { first } else { last };
            let weight = ranges.weigh_host(&self.weighers, &scores(class, offset));
            if weight > best.0 {
                best = (weight, vec![(class, offset)]);
            } else if weight == best.0 {
                best.1.push((class, offset));
            }
        }
        best.1.into_iter().map(|(class, offset)| EqualHosts::new(&class.hosts, offset)).collect()
    }
}

impl<'a> EqualHosts<'a> {
    fn new(hosts: &'a RankedHosts, offset: i64) -> Self {
        let before = offset.checked_sub(1).map_or(0, |less| hosts.up_to((less, u32::MAX)));
        let count = hosts.up_to((offset, u32::MAX)) - before;
        Self { hosts, offset, before, count }
    }

    /// Number of hosts of equal weight in this list whose id is at most `host`.
    fn up_to(&self, host: u32) -> usize {
        self.hosts.up_to((self.offset, host)) - self.before
    }
}

/// The host at position `place` among all hosts of these lists of equally good hosts, ordered by id; `None` if there are fewer.
fn nth_host(all: &[EqualHosts<'_>], place: usize) -> Option<u32> {
    if let [one] = all {
        return one.hosts.nth(one.before + place).map(|(_, host)| host);
    }
    // The lowest number up to which there are enough hosts.
    let is_enough = |host| all.iter().map(|one| one.up_to(host)).sum::<usize>() > place;
    let (mut below, mut host) = (0_u32, u32::MAX);
    while below < host {
        let middle = below + (host - below) / 2;
        if is_enough(middle) {
            host = middle;
        } else {
            below = middle + 1;
        }
    }
    (!all.is_empty()).then_some(host)
}
