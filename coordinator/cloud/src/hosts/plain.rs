//! Placement scheduler that examines every host.

use dormouse_units::{HostId, RandomStream, Time};

use super::fleet::OccupiedHost;
use super::victims::VictimSearch;
use super::views::{BuiltViews, full_views};
use super::weigh::{ScoreRanges, Scores, WEIGHERS};
use crate::{
    HostFleet, Market, PlacementRequest, PlacementRule, Placer, Placing, ScaledWeigher,
    SchedulerName, TieBreak, ViewSource, Weigher,
};

/// Filters and weighs every host for every VM. [`crate::Scheduler`] must make the same choices, and
/// uses this scheduler where no ranking can be kept.
#[derive(Debug)]
pub struct PlainScheduler {
    rule: PlacementRule,
    /// Number of additional copies of all hosts (full views) to make for each call, for measurements.
    unused_views: u32,
}

/// The VMs of a host that count as taking room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RoomView {
    /// All VMs of the host count.
    Full,
    /// All VMs of the host count, and hibernated VMs (which have given up their room) count as if
    /// they had their room back.
    Reserved,
    /// All VMs of the host count, except the preemptible ones.
    Partial,
}

impl RoomView {
    /// True if a host has room for `want` under this view.
    pub(super) fn has_room(self, host: &OccupiedHost, want: &PlacementRequest) -> bool {
        match self {
            Self::Full => host.free.holds(&want.room),
            Self::Reserved => host.spare_room().holds(&want.room),
            Self::Partial => host.partial.holds(&want.room),
        }
    }
}

/// One pass over the hosts: the view of the hosts, and the weighers that compare them.
pub(super) type Pass<'a> = (RoomView, &'a [ScaledWeigher]);

/// Passes over the hosts for a request; the second one, if any, is made if the first finds no host.
pub(super) fn list_passes(rule: &PlacementRule, market: Market) -> (Pass<'_>, Option<Pass<'_>>) {
    let weighers = rule.weighers.as_slice();
    match (rule.scheduler, market) {
        (SchedulerName::Opie, Market::OnDemand) => ((RoomView::Partial, weighers), None),
        (SchedulerName::Retry, Market::OnDemand) => {
            let others = Some(rule.retry_weighers.as_slice()).filter(|list| !list.is_empty());
            ((RoomView::Full, weighers), Some((RoomView::Partial, others.unwrap_or(weighers))))
        }
        (SchedulerName::Filter, Market::OnDemand) => ((RoomView::Full, weighers), None),
        (_, Market::Spot) => ((RoomView::Reserved, weighers), None),
    }
}

/// Chooses the spot VMs that must leave the chosen host to make room for the request; returns the host and these VMs.
pub(super) fn select_victims(
    rule: &PlacementRule,
    now: Time,
    want: &PlacementRequest,
    fleet: &HostFleet,
    id: HostId,
) -> Option<Placing> {
    let host = fleet.host_by_id(id)?;
    if host.free.holds(&want.room) {
        return Some((id, Vec::new()));
    }
    let mut victims = VictimSearch::default();
    victims.look_at(host, rule.cost, now);
    victims
        .select_victims(&want.room.minus_room(&host.free), rule.victims)
        .map(|chosen| (id, chosen))
}

impl PlainScheduler {
    /// A scheduler that follows this rule.
    #[must_use]
    pub const fn new(rule: PlacementRule) -> Self {
        Self { rule, unused_views: 0 }
    }

    /// A scheduler that also builds `unused_views` full views of the hosts for each call, to
    /// measure the cost of code that builds views twice.
    #[must_use]
    pub const fn with_unused_views(rule: PlacementRule, unused_views: u32) -> Self {
        Self { rule, unused_views }
    }

    fn make_pass(
        &self,
        now: Time,
        want: &PlacementRequest,
        fleet: &HostFleet,
        pass: Pass<'_>,
        chance: &mut RandomStream,
    ) -> Option<HostId> {
        let view = pass.0;
        match self.rule.states {
            ViewSource::Kept => {
                let hosts = fleet.hosts().filter(|(_, host)| view.has_room(host, want));
                self.best_host(now, want, hosts, pass.1, chance)
            }
            ViewSource::Built => {
                let is_opie = self.rule.scheduler == SchedulerName::Opie;
                let views = BuiltViews::new(fleet, view, is_opie || view == RoomView::Partial);
                self.best_host(now, want, views.with_room(view, want), pass.1, chance)
            }
        }
    }

    /// The host of greatest weight among the candidates; the placement rule decides between hosts of equal weight.
    fn best_host<'a>(
        &self,
        now: Time,
        want: &PlacementRequest,
        hosts: impl Iterator<Item = (HostId, &'a OccupiedHost)>,
        weighers: &[ScaledWeigher],
        chance: &mut RandomStream,
    ) -> Option<HostId> {
        let mut victims = VictimSearch::default();
        let (mut left, mut ranges) = (Vec::new(), ScoreRanges::NONE);
        for (id, host) in hosts {
            let mut scores: Scores = [0; WEIGHERS];
            for (score, weighed) in scores.iter_mut().zip(weighers) {
                *score = self.score_host(weighed.name, host, want, now, &mut victims);
            }
            ranges.include_scores(&scores);
            left.push((id, scores));
        }
        let mut best = (i128::MIN, Vec::new());
        for (id, scores) in left {
            let weight = ranges.weigh_host(weighers, &scores);
            if weight > best.0 {
                best = (weight, vec![id]);
            } else if weight == best.0 {
                best.1.push(id);
            }
        }
        let chosen = match (self.rule.ties, best.1.len()) {
            (TieBreak::Random, number @ 2..) => chance.draw_below(number),
            _ => 0,
        };
        best.1.get(chosen).copied()
    }

    fn score_host(
        &self,
        weigher: Weigher,
        host: &OccupiedHost,
        want: &PlacementRequest,
        now: Time,
        victims: &mut VictimSearch,
    ) -> i64 {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let cost = self.rule.cost;
        match weigher {
            Weigher::TotalCost => host
                .preemptible_vms()
                .map(|(_, held)| -signed(cost.ending_cost(held.since, now)))
                .sum(),
            Weigher::VictimCost if host.free.holds(&want.room) => 0,
            Weigher::VictimCost => {
                victims.look_at(host, cost, now);
                let least = victims.least_cost(&want.room.minus_room(&host.free), None);
                least.map_or(i64::MIN, |(cost, _)| -signed(cost))
            }
            steady => steady.steady_score(host, want),
        }
    }
}

impl Weigher {
    /// The score of a host, for weighers that don't depend on costs.
    pub(super) fn steady_score(self, host: &OccupiedHost, want: &PlacementRequest) -> i64 {
        match self {
            Self::FreeVcpus => host.free.vcpus.into(),
            Self::FreeMemory => i64::try_from(host.free.memory.get()).unwrap_or(i64::MAX),
            Self::Overcommit => -i64::from(!host.free.holds(&want.room)),
            Self::PreemptibleCount => -(host.preemptible_count() as i64),
            Self::TotalCost | Self::VictimCost => 0,
        }
    }
}

impl Placer for PlainScheduler {
    fn choose_host(
        &mut self,
        now: Time,
        want: &PlacementRequest,
        fleet: &HostFleet,
        chance: &mut RandomStream,
    ) -> Option<Placing> {
        for _ in 0..self.unused_views {
            std::hint::black_box(full_views(fleet));
        }
        let (first, second) = list_passes(&self.rule, want.market);
        let found = self.make_pass(now, want, fleet, first, chance);
        let found = found.or_else(|| self.make_pass(now, want, fleet, second?, chance));
        select_victims(&self.rule, now, want, fleet, found?)
    }
}
