//! Placement scheduler that examines every host.

use dormouse_units::{HostId, Stream, Time};

use super::fleet::Carrier;
use super::victims::Victims;
use super::views::{BuiltViews, full};
use super::weigh::{Ranges, Scores, WEIGHERS};
use crate::{
    Fleet, Market, PlacementRule, Placer, Placing, SchedulerName, States, Ties, Want, Weighed,
    Weigher,
};

/// Filters and weighs every host for every VM. [`crate::Scheduler`] must agree with it, and falls
/// back to it where no ranking can be kept.
#[derive(Debug)]
pub struct Plain {
    rule: PlacementRule,
    /// Number of additional full views to build for each call.
    unused_views: u32,
}

/// The VMs of a host that count as taking room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    /// All VMs of the host.
    Full,
    /// All VMs of the host, and parked VMs as if they had their room back.
    Reserved,
    /// All VMs of the host except the preemptible ones.
    Partial,
}

impl View {
    /// True if a host has room for `want` under this view.
    pub(super) fn has_room(self, host: &Carrier, want: &Want) -> bool {
        match self {
            Self::Full => host.free.holds(&want.room),
            Self::Reserved => host.spare().holds(&want.room),
            Self::Partial => host.partial.holds(&want.room),
        }
    }
}

/// One pass over the hosts: the view of them, and the weighers.
pub(super) type Pass<'a> = (View, &'a [Weighed]);

/// Passes over the hosts for a request; the second is made if the first finds no host.
pub(super) fn passes(rule: &PlacementRule, market: Market) -> (Pass<'_>, Option<Pass<'_>>) {
    let weighers = rule.weighers.as_slice();
    match (rule.scheduler, market) {
        (SchedulerName::Opie, Market::OnDemand) => ((View::Partial, weighers), None),
        (SchedulerName::Retry, Market::OnDemand) => {
            let others = Some(rule.retry_weighers.as_slice()).filter(|list| !list.is_empty());
            ((View::Full, weighers), Some((View::Partial, others.unwrap_or(weighers))))
        }
        (SchedulerName::Filter, Market::OnDemand) => ((View::Full, weighers), None),
        (_, Market::Spot) => ((View::Reserved, weighers), None),
    }
}

/// The chosen host, with the spot VMs that must leave it to make room.
pub(super) fn select(
    rule: &PlacementRule,
    now: Time,
    want: &Want,
    fleet: &Fleet,
    id: HostId,
) -> Option<Placing> {
    let host = fleet.host(id)?;
    if host.free.holds(&want.room) {
        return Some((id, Vec::new()));
    }
    let mut victims = Victims::default();
    victims.look_at(host, rule.cost, now);
    victims.select(&want.room.without(&host.free), rule.victims).map(|chosen| (id, chosen))
}

impl Plain {
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

    fn pass(
        &self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        pass: Pass<'_>,
        chance: &mut Stream,
    ) -> Option<HostId> {
        let view = pass.0;
        match self.rule.states {
            States::Kept => {
                let hosts = fleet.hosts().filter(|(_, host)| view.has_room(host, want));
                self.best(now, want, hosts, pass.1, chance)
            }
            States::Built => {
                let is_opie = self.rule.scheduler == SchedulerName::Opie;
                let views = BuiltViews::new(fleet, view, is_opie || view == View::Partial);
                self.best(now, want, views.with_room(view, want), pass.1, chance)
            }
        }
    }

    /// The host of greatest weight among the candidates, by the rule for ties.
    fn best<'a>(
        &self,
        now: Time,
        want: &Want,
        hosts: impl Iterator<Item = (HostId, &'a Carrier)>,
        weighers: &[Weighed],
        chance: &mut Stream,
    ) -> Option<HostId> {
        let mut victims = Victims::default();
        let (mut left, mut ranges) = (Vec::new(), Ranges::NONE);
        for (id, host) in hosts {
            let mut scores: Scores = [0; WEIGHERS];
            for (score, weighed) in scores.iter_mut().zip(weighers) {
                *score = self.score(weighed.name, host, want, now, &mut victims);
            }
            ranges.include(&scores);
            left.push((id, scores));
        }
        let mut best = (i128::MIN, Vec::new());
        for (id, scores) in left {
            let weight = ranges.weight(weighers, &scores);
            if weight > best.0 {
                best = (weight, vec![id]);
            } else if weight == best.0 {
                best.1.push(id);
            }
        }
        let chosen = match (self.rule.ties, best.1.len()) {
            (Ties::Random, number @ 2..) => chance.below(number),
            _ => 0,
        };
        best.1.get(chosen).copied()
    }

    fn score(
        &self,
        weigher: Weigher,
        host: &Carrier,
        want: &Want,
        now: Time,
        victims: &mut Victims,
    ) -> i64 {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let cost = self.rule.cost;
        match weigher {
            Weigher::TotalCost => {
                host.preemptible().map(|(_, held)| -signed(cost.amount(held.since, now))).sum()
            }
            Weigher::VictimCost if host.free.holds(&want.room) => 0,
            Weigher::VictimCost => {
                victims.look_at(host, cost, now);
                let least = victims.least(&want.room.without(&host.free), None);
                least.map_or(i64::MIN, |(cost, _)| -signed(cost))
            }
            steady => steady.steady(host, want),
        }
    }
}

impl Weigher {
    /// The score of a host, for weighers that don't depend on costs.
    pub(super) fn steady(self, host: &Carrier, want: &Want) -> i64 {
        match self {
            Self::FreeVcpus => host.free.vcpus.into(),
            Self::FreeMemory => i64::try_from(host.free.memory.get()).unwrap_or(i64::MAX),
            Self::Overcommit => -i64::from(!host.free.holds(&want.room)),
            Self::PreemptibleCount => -(host.preemptible_count() as i64),
            Self::TotalCost | Self::VictimCost => 0,
        }
    }
}

impl Placer for Plain {
    fn choose(
        &mut self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        chance: &mut Stream,
    ) -> Option<Placing> {
        for _ in 0..self.unused_views {
            std::hint::black_box(full(fleet));
        }
        let (first, second) = passes(&self.rule, want.market);
        let found = self.pass(now, want, fleet, first, chance);
        let found = found.or_else(|| self.pass(now, want, fleet, second?, chance));
        select(&self.rule, now, want, fleet, found?)
    }
}
