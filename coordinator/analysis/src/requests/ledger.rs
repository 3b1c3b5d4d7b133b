//! The sums of a run's requests, as they come to their ends.

use std::sync::Arc;

use dormouse_cloud::{Catalogue, Market, Prices, Terms};
use dormouse_model::{Effect, Event, Request, Setup, Step, Tenants, VmEnd, Work};
use dormouse_units::{HostId, Money, Price, RequestId, Span, Time, TypeName, VmId};

use super::usage::{Flow, Level};
use super::{Figures, Usage};
use crate::record::Leaving;
use crate::{Change, Record, RequestHistory, VmHistory};

/// How a request came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// There was no room for it.
    Refused,
    /// The request's VM ran for as long as was asked for.
    Completed,
    /// The provider ended its VM, for this reason ([`Figures::terminations`]).
    Terminated(&'static str),
    /// The run was over before.
    RunOver,
}

impl RequestEnd {
    /// In a word, as tables have it: of a VM that was ended for another's sake it is `displaced`.
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

/// A request that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of the request.
    pub request: RequestId,
    /// The instance type.
    pub kind: TypeName,
    /// On-demand for a normal one, spot for a preemptible one.
    pub market: Market,
    /// The time at which it came.
    pub arrived: Time,
    /// For how long its VM was wanted.
    pub duration: Span,
    /// vCPUs of its VM.
    pub vcpus: u32,
    /// What an hour of its VM cost at last, or would have cost.
    pub price: Price,
    /// The request's VM and the host of that; `None` if it got none.
    pub vm: Option<(VmId, HostId)>,
    /// The time at which its VM could be used.
    pub ready: Option<Time>,
    /// The time at which it came to its end.
    pub at: Time,
    /// How it came to its end.
    pub end: RequestEnd,
    /// For how long its VM ran: from when it was ready to its end, without the time in which it was
    /// hibernated.
    pub ran: Span,
    /// The time for which it waited for VMs that had to end first; nothing where it never got their room.
    pub waited: Span,
    /// The VM for whose sake its own was last told to leave, whatever came of that.
    pub displaced_by: Option<VmId>,
    /// What was charged.
    pub cost: Money,
    /// What its run time would cost by the second beyond that, as the provider ended it.
    pub forgone: Money,
}

impl Ended {
    /// What was left of the time that was asked for.
    #[must_use]
    pub const fn rest(&self) -> Span {
        self.duration.saturating_sub(self.ran)
    }
}

/// Adds up what the requests in a record come to.
#[derive(Debug)]
pub struct Ledger {
    tenants: Tenants,
    catalogue: Catalogue,
    terms: Terms,
    prices: Arc<dyn Prices>,
    figures: Figures,
}

impl Ledger {
    /// Ledger of a run of this whole setup with these tenants, before its first step.
    #[must_use]
    pub fn new(setup: &Setup, tenants: Tenants) -> Self {
        Self {
            tenants,
            catalogue: setup.catalogue.clone(),
            terms: setup.terms.clone(),
            prices: setup.terms.prices(),
            figures: Figures::default(),
        }
    }

    /// What it has come to so far.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What it has come to.
    #[must_use]
    pub fn finish(self) -> Figures {
        self.figures
    }

    /// Takes in a step that the record has taken in; `ended` is shown every request that ends with it.
    ///
    /// # Errors
    ///
    /// Those of `ended`.
    pub fn see<E>(
        &mut self,
        record: &Record,
        step: &Step,
        mut ended: impl FnMut(&Ended) -> Result<(), E>,
    ) -> Result<(), E> {
        self.usage().pass(step.at);
        match &step.event {
            Event::HostJoined { offer, .. } if offer.vcpus == u32::MAX => self.usage().boundless(),
            Event::HostJoined { host, .. } => self.host(record, *host, Usage::more),
            Event::HostLost { host, .. } => self.host(record, *host, Usage::less),
            Event::Cancel { why } => {
                self.figures.cancelled.get_or_insert_with(|| why.clone());
            }
            _ => {}
        }
        for change in record.changes() {
            self.change(record, *change);
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
                Some(vm) => self.served(step.at, request, vm),
                None => self.refused(step.at, request),
            };
            self.over(&it);
            ended(&it)?;
        }
        Ok(())
    }

    const fn usage(&mut self) -> &mut Usage {
        &mut self.figures.usage
    }

    /// The room of a host is there, or is not any more.
    fn host(&mut self, record: &Record, host: HostId, change: fn(&mut Usage, Level, u64)) {
        let offer = record.hosts.get(&host).map(|host| host.offer);
        if let Some(offer) = offer.filter(|offer| offer.vcpus < u32::MAX) {
            change(self.usage(), Level::HostVcpus, offer.vcpus.into());
            change(self.usage(), Level::HostMemory, offer.memory.get());
        }
    }

    fn change(&mut self, record: &Record, change: Change) {
        match change {
            Change::Requested(vm) => {
                self.usage().arrival();
                if let Some(RequestHistory { asks, .. }) = record.request(vm) {
                    self.figures.tally(&asks.kind, asks.market).requests += 1;
                }
            }
            Change::Granted(vm) => {
                if let Some(RequestHistory { asks, .. }) = record.request(vm) {
                    self.figures.tally(&asks.kind, asks.market).granted += 1;
                }
            }
            Change::Runs(vm) => {
                self.used(record, vm, Usage::more);
                if let Some(vm) = record.vm(vm)
                    && vm.hibernations.is_empty()
                {
                    self.ready(record, vm);
                }
            }
            Change::Stands(vm) => self.used(record, vm, Usage::less),
            _ => {}
        }
    }

    /// A VM uses its vCPUs and its memory, or does not any more, whoever has it.
    fn used(&mut self, record: &Record, vm: VmId, change: fn(&mut Usage, Level, u64)) {
        let Some(vm) = record.vm(vm) else { return };
        let [vcpus, memory] = levels(vm.market);
        let bytes = self.catalogue.get(&vm.kind).map_or(0, |kind| kind.memory.get());
        change(self.usage(), vcpus, vm.vcpus.into());
        change(self.usage(), memory, bytes);
    }

    /// The VM of a request can be used.
    fn ready(&mut self, record: &Record, vm: &VmHistory) {
        let (Some(request), Some(ready)) = (record.request(vm.id), vm.ready) else { return };
        if !vm.waited_for.is_empty() {
            let waited = self.waited(request, vm);
            self.figures.waits.add(waited);
        }
        let latency = ready.since(request.arrived);
        match request.asks.market {
            Market::OnDemand => self.figures.normal_latency.add(latency),
            Market::Spot => self.figures.preemptible_latency.add(latency),
        }
    }

    /// The time for which a request waited for the room of others; none where it never got it.
    fn waited(&self, request: &RequestHistory, vm: &VmHistory) -> Span {
        match (vm.waited_for.is_empty(), vm.ready) {
            (false, Some(ready)) => {
                ready.since(request.arrived).saturating_sub(self.catalogue.boot)
            }
            _ => Span::ZERO,
        }
    }

    /// A request whose VM is gone.
    fn served(&self, now: Time, request: &RequestHistory, vm: &VmHistory) -> Ended {
        let (why, cost) =
            vm.ended.map_or((VmEnd::RunOver, Money::ZERO), |(_, why, cost)| (why, cost));
        let end = match why {
            VmEnd::Terminated => RequestEnd::Completed,
            VmEnd::Preempted => RequestEnd::Terminated(self.preempted_for(vm)),
            VmEnd::HostLost | VmEnd::Failed => RequestEnd::Terminated(why.word()),
            VmEnd::WorkDone | VmEnd::RunOver => RequestEnd::RunOver,
        };
        let Request { kind, market, duration } = &request.asks;
        Ended {
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
            waited: self.waited(request, vm),
            displaced_by: vm.displaced.last().map(|how| how.by),
            cost,
            forgone: vm.meter().forgone(self.terms.tariff),
        }
    }

    /// Why the provider ended a VM.
    fn preempted_for(&self, vm: &VmHistory) -> &'static str {
        match vm.leaving {
            Some(Leaving::Outbid) => "outbid",
            Some(Leaving::Reclaimed) => "unavailable",
            None => "interruption",
            Some(Leaving::For(by)) => self.tenants.work_on(by).unwrap_or(Work::Requests).name(),
        }
    }

    fn refused(&self, now: Time, request: &RequestHistory) -> Ended {
        let Request { kind, market, duration } = &request.asks;
        let offer = self.catalogue.get(kind);
        let listed = offer.and_then(|offer| self.prices.at(offer, *market, now));
        Ended {
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
        }
    }

    /// A request has come to its end.
    fn over(&mut self, it: &Ended) {
        let (failed, revenue) = match it.market {
            Market::OnDemand => (Flow::FailedNormal, Flow::NormalRevenue),
            Market::Spot => (Flow::FailedPreemptible, Flow::PreemptibleRevenue),
        };
        match (it.end, it.market) {
            (RequestEnd::Refused, _) => self.usage().count(failed, 1),
            (RequestEnd::Terminated(_), Market::Spot) => self.usage().count(Flow::Terminations, 1),
            _ => {}
        }
        self.usage().count(revenue, it.cost.as_nanos());
        self.figures.ended(it);
    }
}

/// The levels of vCPUs and memory of a market.
const fn levels(market: Market) -> [Level; 2] {
    match market {
        Market::OnDemand => [Level::NormalVcpus, Level::NormalMemory],
        Market::Spot => [Level::PreemptibleVcpus, Level::PreemptibleMemory],
    }
}
