//! What the requests of a run come to for the provider.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_units::{Money, Time, TypeName};

use super::{Ended, Quantiles, RequestEnd, Usage};

/// The fate of some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many came.
    pub requests: u64,
    /// Those that got a VM.
    pub granted: u64,
    /// Those that were refused: there was no room for them.
    pub refused: u64,
    /// Those whose VM ran for as long as was asked for.
    pub completed: u64,
    /// Those whose VM the provider ended: displaced, interrupted, outbid, or lost with its host.
    pub terminated: u64,
    /// The number of times that their VMs hibernated.
    pub hibernations: u64,
    /// What was charged for their VMs.
    pub revenue: Money,
}

impl Tally {
    fn with(self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            granted: self.granted + other.granted,
            refused: self.refused + other.refused,
            completed: self.completed + other.completed,
            terminated: self.terminated + other.terminated,
            hibernations: self.hibernations + other.hibernations,
            revenue: self.revenue + other.revenue,
        }
    }
}

/// Revenue that the provider did not have, each figure without what the others count. What is not
/// charged is reckoned by the second, at the price that the VM had or would have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// VMs ran for it, and it is not charged as the provider ended them, or hibernated them, within a
    /// started hour; nothing under a tariff by the second.
    pub uncharged: Money,
    /// The whole durations of normal requests that were refused.
    pub failed: Money,
    /// Those of preemptible requests that were refused.
    pub failed_preemptible: Money,
    /// What VMs that the provider ended had yet to run of what was asked for.
    pub cut_short: Money,
}

/// The figures of the requests of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The fate of them, by type and market.
    pub by_type: BTreeMap<(TypeName, Market), Tally>,
    /// How many VMs of preemptible requests the provider ended, by the reason: for whose VM (`requests`,
    /// `bag`, `jobs`), or `interruption`, `outbid`, `host-lost`, `failed`.
    pub terminations: BTreeMap<&'static str, u64>,
    /// The time for which normal requests waited for the room of VMs that had to end first, of those that waited
    /// and got it.
    pub waits: Quantiles,
    /// From each normal request to its VM being ready.
    pub normal_latency: Quantiles,
    /// From each preemptible request to its VM being ready.
    pub preemptible_latency: Quantiles,
    /// The run time of VMs of preemptible requests that the provider ended, times their vCPUs, in vCPU ×
    /// microseconds: all that was done on them is lost, as nothing there is checkpointed. Time in which
    /// they were hibernated does not count.
    pub work_lost_vcpu_us: u128,
    /// Revenue that was lost.
    pub lost: Lost,
    /// What of the hosts was used over time, and what happened when.
    pub usage: Usage,
    /// The time at which the last of them came to its end.
    pub last_end: Time,
    /// Why the run was ended before its time, if it was.
    pub cancelled: Option<String>,
}

impl Figures {
    /// The fate of the requests of one market.
    #[must_use]
    pub fn market_tally(&self, market: Market) -> Tally {
        let alike = self.by_type.iter().filter(|((_, of), _)| *of == market);
        alike.fold(Tally::default(), |sum, (_, tally)| sum.with(tally))
    }

    /// The fate of all.
    #[must_use]
    pub fn all(&self) -> Tally {
        self.market_tally(Market::OnDemand).with(&self.market_tally(Market::Spot))
    }

    /// Requests whose VMs had not ended when the run was.
    #[must_use]
    pub fn left(&self) -> u64 {
        let all = self.all();
        all.requests - all.refused - all.completed - all.terminated
    }

    /// The part of the normal requests that were refused; `None`: there were none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn failed_share(&self) -> Option<f64> {
        let Tally { requests, refused, .. } = self.market_tally(Market::OnDemand);
        (requests > 0).then(|| refused as f64 / requests as f64)
    }

    /// Work lost, in vCPU × hours.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn work_lost_vcpu_h(&self) -> f64 {
        self.work_lost_vcpu_us as f64 / 3.6e9
    }

    /// The tally in which these requests are counted.
    pub(super) fn tally(&mut self, kind: &TypeName, market: Market) -> &mut Tally {
        self.by_type.entry((kind.clone(), market)).or_default()
    }

    /// A request has come to its end.
    pub(super) fn ended(&mut self, it: &Ended) {
        self.last_end = self.last_end.max(it.at);
        let tally = self.tally(&it.kind, it.market);
        tally.revenue += it.cost;
        match it.end {
            RequestEnd::Refused => tally.refused += 1,
            RequestEnd::Completed => tally.completed += 1,
            RequestEnd::Terminated(_) => tally.terminated += 1,
            RequestEnd::RunOver => {}
        }
        self.lost.uncharged += it.forgone;
        let (rest, whole) = (it.price.for_span(it.rest()), it.price.for_span(it.duration));
        match (it.end, it.market) {
            (RequestEnd::Refused, Market::OnDemand) => self.lost.failed += whole,
            (RequestEnd::Refused, Market::Spot) => self.lost.failed_preemptible += whole,
            (RequestEnd::Terminated(why), market) => {
                self.lost.cut_short += rest;
                if market == Market::Spot {
                    *self.terminations.entry(why).or_default() += 1;
                    let ran = u128::from(it.ran.as_micros());
                    self.work_lost_vcpu_us += u128::from(it.vcpus) * ran;
                }
            }
            _ => {}
        }
    }
}
