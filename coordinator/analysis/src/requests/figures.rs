//! Figures of the requests of a run, as the provider sees them.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_units::{Money, Time, TypeName};

use super::{EndedRequest, HostUsage, RequestEnd, TimeQuantiles, UsageLevel};

/// Number of requests by outcome, with their revenue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTally {
    /// Number of requests that arrived.
    pub requests: u64,
    /// Number of requests that got a VM.
    pub granted: u64,
    /// Number of requests refused for lack of room.
    pub refused: u64,
    /// Number of requests whose VM ran for the requested duration.
    pub completed: u64,
    /// Number of requests whose VM the provider ended: displaced, interrupted, outbid, or lost with its host.
    pub terminated: u64,
    /// Number of hibernations of the requests' VMs.
    pub hibernations: u64,
    /// Charges for the VMs of the requests.
    pub revenue: Money,
}

impl RequestTally {
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

/// Revenue that the provider missed; its parts don't overlap. Uncharged time is priced by the
/// second, at the price that the VM had or would have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostRevenue {
    /// Revenue missed for time that VMs ran uncharged, because the provider ended or hibernated them within a started
    /// hour; zero under a tariff by the second.
    pub uncharged: Money,
    /// Revenue missed for the whole durations of refused normal requests.
    pub failed: Money,
    /// Revenue missed for the whole durations of refused preemptible requests.
    pub failed_preemptible: Money,
    /// Revenue lost for the rest of the requested duration, of VMs that the provider ended.
    pub cut_short: Money,
}

impl LostRevenue {
    /// The revenue that the provider missed for any cause.
    #[must_use]
    pub fn all(&self) -> Money {
        self.uncharged + self.failed + self.failed_preemptible + self.cut_short
    }
}

/// Figures of the requests of a run.
#[derive(Clone, Debug, Default)]
pub struct RequestFigures {
    /// Number of requests by outcome, for each instance type and market.
    pub by_type: BTreeMap<(TypeName, Market), RequestTally>,
    /// Number of VMs of preemptible requests that the provider ended, by reason: the tenant whose
    /// VM needed the room (`requests`, `bag`, `jobs`), or `interruption`, `outbid`, `host-lost`,
    /// `failed`.
    pub terminations: BTreeMap<&'static str, u64>,
    /// Time for which normal requests waited for VMs that had to end first, over the requests that
    /// waited and got their VM.
    pub waits: TimeQuantiles,
    /// Time from each normal request until its VM was ready.
    pub normal_latency: TimeQuantiles,
    /// Time from each preemptible request until its VM was ready.
    pub preemptible_latency: TimeQuantiles,
    /// Work lost on VMs of preemptible requests that the provider ended: run time without
    /// hibernations × vCPUs, in vCPU-microseconds. All of this work is lost, since VMs of requests
    /// are not checkpointed.
    pub work_lost_vcpu_us: u128,
    /// vCPUs of all requests × their requested durations, in vCPU-microseconds.
    pub wanted_vcpu_us: u128,
    /// Revenue that the provider missed, by cause.
    pub lost: LostRevenue,
    /// Part of the revenue that is for disks of hibernated VMs; `None` if the provider charges nothing for them.
    pub stopped_disks: Option<Money>,
    /// Use of the hosts and counts of events, over time.
    pub usage: HostUsage,
    /// Time at which the last request ended.
    pub last_end: Time,
    /// Reason given by the user who ended the run early; `None` if no user did.
    pub cancelled: Option<String>,
}

impl RequestFigures {
    /// Number of requests by outcome, summed over all types of one market.
    #[must_use]
    pub fn market_tally(&self, market: Market) -> RequestTally {
        let alike = self.by_type.iter().filter(|((_, of), _)| *of == market);
        alike.fold(RequestTally::default(), |sum, (_, tally)| sum.with(tally))
    }

    /// Number of requests by outcome, summed over all types and markets.
    #[must_use]
    pub fn all(&self) -> RequestTally {
        self.market_tally(Market::OnDemand).with(&self.market_tally(Market::Spot))
    }

    /// Number of requests whose VMs were still there at the end of the run.
    #[must_use]
    pub fn left(&self) -> u64 {
        let all = self.all();
        all.requests - all.refused - all.completed - all.terminated
    }

    /// Refused part of the normal requests; `None` if there were no normal requests.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn failed_share(&self) -> Option<f64> {
        let RequestTally { requests, refused, .. } = self.market_tally(Market::OnDemand);
        (requests > 0).then(|| refused as f64 / requests as f64)
    }

    /// vCPU time of all requests as a part of the hosts' vCPU time until the last request arrived: the offered load. Above 1,
    /// requests want more than the hosts have. `None` if no time passed until then, or if a host has no bounds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn wanted_share(&self) -> Option<f64> {
        let (_, until) = self.usage.until_last_arrival().filter(|_| self.usage.is_bounded())?;
        let whole = until.integral(UsageLevel::HostVcpus);
        (whole > 0).then(|| self.wanted_vcpu_us as f64 / whole as f64)
    }

    /// Lost work in vCPU-hours.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn work_lost_vcpu_h(&self) -> f64 {
        self.work_lost_vcpu_us as f64 / 3.6e9
    }

    /// The tally of requests of this type and market.
    pub(super) fn tally(&mut self, kind: &TypeName, market: Market) -> &mut RequestTally {
        self.by_type.entry((kind.clone(), market)).or_default()
    }

    /// Adds a request that ended.
    pub(super) fn ended(&mut self, it: &EndedRequest) {
        self.last_end = self.last_end.max(it.at);
        let tally = self.tally(&it.kind, it.market);
        tally.revenue += it.cost;
        match it.end {
            RequestEnd::Refused => tally.refused += 1,
            RequestEnd::Completed => tally.completed += 1,
            RequestEnd::Terminated(_) => tally.terminated += 1,
            RequestEnd::RunOver => {}
        }
        self.wanted_vcpu_us += u128::from(it.vcpus) * u128::from(it.duration.as_micros());
        self.lost.uncharged += it.forgone;
        self.stopped_disks = self.stopped_disks.map(|sum| sum + it.stopped_disk);
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

#[cfg(test)]
mod tests {
    use dormouse_units::{Price, RequestId, Span};

    use super::*;

    /// Ten vCPUs for the 100 s until the last request, which wants four of them for 200 s: 800 of 1,000 vCPU-seconds.
    #[test]
    fn the_wanted_share_is_of_the_hosts_time_until_the_last_request() {
        let mut figures = RequestFigures::default();
        assert_eq!(figures.wanted_share(), None);
        figures.usage.more(UsageLevel::HostVcpus, 10);
        figures.usage.pass(Time::from_secs(100));
        figures.usage.arrival();
        figures.usage.pass(Time::from_secs(500));
        figures.ended(&EndedRequest {
            request: RequestId::new(0),
            kind: "small".into(),
            vcpus: 4,
            market: Market::Spot,
            arrived: Time::from_secs(100),
            duration: Span::from_secs(200),
            price: Price::default(),
            vm: None,
            ready: None,
            at: Time::from_secs(100),
            end: RequestEnd::Refused,
            ran: Span::ZERO,
            waited: Span::ZERO,
            displaced_by: None,
            cost: Money::ZERO,
            forgone: Money::ZERO,
            stopped_disk: Money::ZERO,
        });
        assert_eq!(figures.wanted_share(), Some(0.8));
        figures.usage.boundless();
        assert_eq!(figures.wanted_share(), None);
    }
}
