//! Adds up the requests of a run as they end.

use std::sync::Arc;

use dormouse_cloud::{Catalogue, Market, Prices, ProviderTerms};
use dormouse_model::{Effect, Event, Setup, Step, TenantWork, Tenants, VmEnd, VmRequest};
use dormouse_units::{HostId, Money, Price, RequestId, Span, Time, TypeName, VmId};

use super::usage::{UsageFlow, UsageLevel};
use super::{HostUsage, RequestFigures};
use crate::record::LeaveReason;
use crate::{RecordChange, RequestHistory, RunRecord, VmHistory};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// The request was refused for lack of room.
    Refused,
    /// The VM ran for the requested duration.
    Completed,
    /// The provider ended the VM, for this reason ([`RequestFigures::terminations`]).
    Terminated(&'static str),
    /// The run ended before the request's VM did.
    RunOver,
}

impl RequestEnd {
    /// The end of a request as one word for tables; `displaced` if the provider ended its VM to
    /// make room for another VM.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Completed => "completed",
            Self::Terminated(why) => match why.as_bytes() {
                b"interruption" | b"outbid" | b"host-lost" | b"failed" => why,
                _ => "displaced",
            },
            Self::RunOver => "run-over",
        }
    }
}

/// A request that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    /// Number of the request.
    pub request: RequestId,
    /// Instance type that the request asked for.
    pub kind: TypeName,
    /// On-demand for a normal request, spot for a preemptible one.
    pub market: Market,
    /// Time of the request's arrival.
    pub arrived: Time,
    /// Duration that the request asked for.
    pub duration: Span,
    /// Number of vCPUs of the request's VM.
    pub vcpus: u32,
    /// Last hourly price of the request's VM, or the price that the VM would have had.
    pub price: Price,
    /// VM and host that the request got; `None` if the request was refused.
    pub vm: Option<(VmId, HostId)>,
    /// Time at which the request's VM was ready; `None` if it never was.
    pub ready: Option<Time>,
    /// Time at which the request ended.
    pub at: Time,
    /// How the request ended.
    pub end: RequestEnd,
    /// Time for which the request's VM ran, from ready to its end without hibernations.
    pub ran: Span,
    /// Time for which the request waited for VMs that had to end first; zero if the request never
    /// got the room of these VMs.
    pub waited: Span,
    /// VM for which the request's own VM was last commanded to make room, whatever the outcome; `None` if it never was.
    pub displaced_by: Option<VmId>,
    /// Charge for the request's VM.
    pub cost: Money,
    /// Price of the VM's run time, counted by the second, that the provider does not charge because it ended the VM.
    pub forgone: Money,
    /// Part of the charge for the disk of the request's VM while the VM was hibernated.
    pub stopped_disk: Money,
}

impl EndedRequest {
    /// Rest of the requested duration that the request's VM did not run.
    #[must_use]
    pub const fn rest(&self) -> Span {
        self.duration.saturating_sub(self.ran)
    }
}

/// Adds up the requests of a run. Call [`Self::see`] after the record has handled a step.
#[derive(Debug)]
pub struct RequestLedger {
    tenants: Tenants,
    catalogue: Catalogue,
    terms: ProviderTerms,
    prices: Arc<dyn Prices>,
    figures: RequestFigures,
}

impl RequestLedger {
    /// An empty ledger for a run of this whole setup with these tenants.
    #[must_use]
    pub fn new(setup: &Setup, tenants: Tenants) -> Self {
        Self {
            tenants,
            catalogue: setup.catalogue.clone(),
            terms: setup.terms.clone(),
            prices: setup.terms.price_source(),
            figures: RequestFigures {
                stopped_disks: setup.terms.billing.stopped_disk.map(|_| Money::ZERO),
                ..RequestFigures::default()
            },
        }
    }

    /// Figures of the requests so far.
    #[must_use]
    pub const fn figures(&self) -> &RequestFigures {
        &self.figures
    }

    /// Returns the final figures of the run's requests.
    #[must_use]
    pub fn finish(self) -> RequestFigures {
        self.figures
    }

    /// Adds a step that the record has handled; `ended` gets every request that ends with it.
    ///
    /// # Errors
    ///
    /// Errors that `ended` returns.
    pub fn see<E>(
        &mut self,
        record: &RunRecord,
        step: &Step,
        mut ended: impl FnMut(&EndedRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        self.usage_mut().pass(step.at);
        match &step.event {
            Event::HostJoined { offer, .. } if offer.vcpus == u32::MAX => {
                self.usage_mut().boundless();
            }
            Event::HostJoined { host, .. } => self.change_capacity(record, *host, HostUsage::more),
            Event::HostLost { host, .. } => self.change_capacity(record, *host, HostUsage::less),
            Event::Cancel { why } => {
                self.figures.cancelled.get_or_insert_with(|| why.clone());
            }
            _ => {}
        }
        for change in record.changes() {
            self.add_change(record, *change);
        }
        for effect in &step.effects {
            if let Effect::VmHibernated { vm, .. } = effect
                && let Some(request) = record.request(*vm)
            {
                self.figures.tally(&request.asks.kind, request.asks.market).hibernations += 1;
            }
        }
        for request in &record.closed().requests {
            let it = match record.vm(request.vm).filter(|_| request.is_granted) {
                Some(vm) => self.served_request(step.at, request, vm),
                None => self.refused_request(step.at, request),
            };
            self.add_ended(&it);
            ended(&it)?;
        }
        Ok(())
    }

    const fn usage_mut(&mut self) -> &mut HostUsage {
        &mut self.figures.usage
    }

    /// Adds a host's capacity to the capacity of all hosts, or removes it.
    fn change_capacity(
        &mut self,
        record: &RunRecord,
        host: HostId,
        change: fn(&mut HostUsage, UsageLevel, u64),
    ) {
        let offer = record.hosts.get(&host).map(|host| host.offer);
        if let Some(offer) = offer.filter(|offer| offer.vcpus < u32::MAX) {
            change(self.usage_mut(), UsageLevel::HostVcpus, offer.vcpus.into());
            change(self.usage_mut(), UsageLevel::HostMemory, offer.memory.get());
        }
    }

    fn add_change(&mut self, record: &RunRecord, change: RecordChange) {
        match change {
            RecordChange::Requested(vm) => {
                self.usage_mut().arrival();
                if let Some(RequestHistory { asks, .. }) = record.request(vm) {
                    self.figures.tally(&asks.kind, asks.market).requests += 1;
                }
            }
            RecordChange::Granted(vm) => {
                if let Some(RequestHistory { asks, .. }) = record.request(vm) {
                    self.figures.tally(&asks.kind, asks.market).granted += 1;
                }
            }
            RecordChange::Runs(vm) => {
                self.change_usage(record, vm, HostUsage::more);
                if let Some(vm) = record.vm(vm)
                    && vm.hibernations.is_empty()
                {
                    self.add_ready(record, vm);
                }
            }
            RecordChange::Stands(vm) => self.change_usage(record, vm, HostUsage::less),
            _ => {}
        }
    }

    /// Adds or removes the vCPUs and memory that a VM of any tenant uses.
    fn change_usage(
        &mut self,
        record: &RunRecord,
        vm: VmId,
        change: fn(&mut HostUsage, UsageLevel, u64),
    ) {
        let Some(vm) = record.vm(vm) else { return };
        let [vcpus, memory] = levels_of(vm.market);
        let bytes = self.catalogue.get(&vm.kind).map_or(0, |kind| kind.memory.get());
        change(self.usage_mut(), vcpus, vm.vcpus.into());
        change(self.usage_mut(), memory, bytes);
    }

    /// Adds the latency and wait of a request whose VM is ready for the first time.
    fn add_ready(&mut self, record: &RunRecord, vm: &VmHistory) {
        let (Some(request), Some(ready)) = (record.request(vm.id), vm.ready) else { return };
        if !vm.waited_for.is_empty() {
            let waited = self.wait_for_room(request, vm);
            self.figures.waits.add(waited);
        }
        let latency = ready.since(request.arrived);
        match request.asks.market {
            Market::OnDemand => self.figures.normal_latency.add(latency),
            Market::Spot => self.figures.preemptible_latency.add(latency),
        }
    }

    /// Time for which a request waited for other VMs' room; zero if the request never got that room.
    fn wait_for_room(&self, request: &RequestHistory, vm: &VmHistory) -> Span {
        match (vm.waited_for.is_empty(), vm.ready) {
            (false, Some(ready)) => {
                ready.since(request.arrived).saturating_sub(self.catalogue.boot)
            }
            _ => Span::ZERO,
        }
    }

    /// The ended request of a VM that is gone.
    fn served_request(&self, now: Time, request: &RequestHistory, vm: &VmHistory) -> EndedRequest {
        let (why, cost) =
            vm.ended.map_or((VmEnd::RunOver, Money::ZERO), |(_, why, cost)| (why, cost));
        let end = match why {
            VmEnd::Terminated => RequestEnd::Completed,
            VmEnd::Preempted => RequestEnd::Terminated(self.preempted_for(vm)),
            VmEnd::HostLost | VmEnd::Failed => RequestEnd::Terminated(why.one_word()),
            VmEnd::WorkDone | VmEnd::RunOver => RequestEnd::RunOver,
        };
        let VmRequest { kind, market, duration } = &request.asks;
        EndedRequest {
            request: request.request,
            vcpus: self.catalogue.get(kind).map_or(0, |kind| kind.vcpus),
            kind: kind.clone(),
            market: *market,
            arrived: request.arrived,
            duration: *duration,
            price: vm.meter().price(),
            vm: Some((vm.id, vm.host)),
            ready: vm.ready,
            at: now,
            end,
            ran: vm.ran(now),
            waited: self.wait_for_room(request, vm),
            displaced_by: vm.displaced.last().map(|how| how.by),
            cost,
            forgone: vm.meter().forgone_cost(self.terms.tariff),
            stopped_disk: vm.meter().disk_cost(),
        }
    }

    /// The reason for which the provider ended a VM.
    fn preempted_for(&self, vm: &VmHistory) -> &'static str {
        match vm.leaving {
            Some(LeaveReason::Outbid) => "outbid",
            Some(LeaveReason::Reclaimed) => "unavailable",
            None => "interruption",
            Some(LeaveReason::For(by)) => {
                self.tenants.work_on(by).unwrap_or(TenantWork::Requests).name()
            }
        }
    }

    fn refused_request(&self, now: Time, request: &RequestHistory) -> EndedRequest {
        let VmRequest { kind, market, duration } = &request.asks;
        let offer = self.catalogue.get(kind);
        let listed = offer.and_then(|offer| self.prices.price_at(offer, *market, now));
        EndedRequest {
            request: request.request,
            vcpus: offer.map_or(0, |kind| kind.vcpus),
            price: listed.unwrap_or_default(),
            kind: kind.clone(),
            market: *market,
            arrived: request.arrived,
            duration: *duration,
            vm: None,
            ready: None,
            at: now,
            end: RequestEnd::Refused,
            ran: Span::ZERO,
            waited: Span::ZERO,
            displaced_by: None,
            cost: Money::ZERO,
            forgone: Money::ZERO,
            stopped_disk: Money::ZERO,
        }
    }

    /// Adds an ended request to the figures.
    fn add_ended(&mut self, it: &EndedRequest) {
        let (failed, revenue) = match it.market {
            Market::OnDemand => (UsageFlow::FailedNormal, UsageFlow::NormalRevenue),
            Market::Spot => (UsageFlow::FailedPreemptible, UsageFlow::PreemptibleRevenue),
        };
        match (it.end, it.market) {
            (RequestEnd::Refused, _) => self.usage_mut().count(failed, 1),
            (RequestEnd::Terminated(_), Market::Spot) => {
                self.usage_mut().count(UsageFlow::Terminations, 1);
            }
            _ => {}
        }
        self.usage_mut().count(revenue, it.cost.as_nanos());
        self.figures.ended(it);
    }
}

/// The usage levels of a market: vCPUs and memory.
const fn levels_of(market: Market) -> [UsageLevel; 2] {
    match market {
        Market::OnDemand => [UsageLevel::NormalVcpus, UsageLevel::NormalMemory],
        Market::Spot => [UsageLevel::PreemptibleVcpus, UsageLevel::PreemptibleMemory],
    }
}
