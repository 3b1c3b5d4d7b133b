//! The requests of a run as its steps tell of them: those that are open, and their figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{Catalogue, Market, Meter, Prices, Terms};
use dormouse_model::{Effect, Event, Notice, Request, Setup, Step, Tenants, VmEnd, Work};
use dormouse_units::{HostId, Money, Price, RequestId, Span, Time, TypeName, VmId};

use super::usage::{Flow, Level};
use super::{Figures, Usage};

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

/// Follows the steps of a run: what is open is held, and of what has ended the sums are.
#[derive(Debug)]
pub struct Ledger {
    tenants: Tenants,
    catalogue: Catalogue,
    terms: Terms,
    prices: Arc<dyn Prices>,
    hosts: BTreeMap<HostId, (u64, u64)>,
    /// Every VM of the run that is alive, whoever has it.
    vms: BTreeMap<VmId, Machine>,
    /// Requests whose VM has not ended, by their VM.
    open: BTreeMap<VmId, Open>,
    figures: Figures,
}

/// A VM that is alive.
#[derive(Clone, Copy, Debug)]
struct Machine {
    market: Market,
    vcpus: u32,
    memory: u64,
    /// Since when it runs; `None`: it does not.
    runs_since: Option<Time>,
}

/// A request that is not over.
#[derive(Clone, Debug)]
struct Open {
    request: RequestId,
    asks: Request,
    arrived: Time,
    /// The request's VM, once it is granted.
    granted: Option<Granted>,
}

#[derive(Clone, Debug)]
struct Granted {
    host: HostId,
    meter: Meter,
    ready: Option<Time>,
    ran: Span,
    /// Others have to leave before it can boot.
    waits: bool,
    waited: Span,
    displaced_by: Option<VmId>,
    /// For whom it is about to end, or to hibernate.
    leaves_for: Option<VmId>,
    is_outbid: bool,
    is_reclaimed: bool,
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
            hosts: BTreeMap::new(),
            vms: BTreeMap::new(),
            open: BTreeMap::new(),
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

    /// Takes in a step of the run, as it is in its log; `ended` is shown every request that ends with it.
    ///
    /// # Errors
    ///
    /// Those of `ended`.
    pub fn see<E>(
        &mut self,
        step: &Step,
        mut ended: impl FnMut(&Ended) -> Result<(), E>,
    ) -> Result<(), E> {
        self.usage().pass(step.at);
        match &step.event {
            Event::HostJoined { host, offer, .. } => {
                self.host_joined(*host, (offer.vcpus, offer.memory.get()));
            }
            Event::HostLost { host, .. } => self.host_left(*host),
            Event::Cancel { why } => {
                self.figures.cancelled.get_or_insert_with(|| why.clone());
            }
            Event::Requested { request, asks } if !step.effects.contains(&Effect::Stale) => {
                self.requested(step.at, *request, asks);
            }
            _ => {}
        }
        for effect in &step.effects {
            if let Some(it) = self.effect(step.at, effect) {
                self.over(&it);
                ended(&it)?;
            }
        }
        for notice in &step.notices {
            if let Notice::LaunchRefused { vm, .. } = notice
                && let Some(it) = self.refused(step.at, *vm)
            {
                self.over(&it);
                ended(&it)?;
            }
        }
        Ok(())
    }

    const fn usage(&mut self) -> &mut Usage {
        &mut self.figures.usage
    }

    fn host_joined(&mut self, host: HostId, (vcpus, memory): (u32, u64)) {
        if vcpus == u32::MAX {
            return self.usage().boundless();
        }
        let vcpus = u64::from(vcpus);
        self.hosts.insert(host, (vcpus, memory));
        self.usage().more(Level::HostVcpus, vcpus);
        self.usage().more(Level::HostMemory, memory);
    }

    fn host_left(&mut self, host: HostId) {
        if let Some((vcpus, memory)) = self.hosts.remove(&host) {
            self.usage().less(Level::HostVcpus, vcpus);
            self.usage().less(Level::HostMemory, memory);
        }
    }

    fn requested(&mut self, now: Time, request: RequestId, asks: &Request) {
        self.usage().arrival();
        self.figures.tally(&asks.kind, asks.market).requests += 1;
        let open = Open { request, asks: asks.clone(), arrived: now, granted: None };
        self.open.extend(self.tenants.vm_of(request).map(|vm| (vm, open)));
    }

    /// What a step did; the request that came to its end with it.
    fn effect(&mut self, now: Time, effect: &Effect) -> Option<Ended> {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, vcpus, host, .. } => {
                let memory = self.catalogue.get(kind).map_or(0, |kind| kind.memory.get());
                let (market, vcpus) = (*market, *vcpus);
                self.vms.insert(*vm, Machine { market, vcpus, memory, runs_since: None });
                let meter = Meter::launched(now, *price, self.terms.billing).at_most(*bid);
                self.granted(*vm, *host, meter);
            }
            Effect::VmReady { vm } => {
                self.runs(now, *vm);
                self.ready(now, *vm);
            }
            Effect::VmHibernated { vm, .. } => {
                self.stands(now, *vm);
                if let Some(open) = self.open.get_mut(vm) {
                    if let Some(granted) = &mut open.granted {
                        granted.meter.freeze(now);
                        // It has left: what ends it now is something else.
                        granted.leaves_for = None;
                    }
                    let (kind, market) = (open.asks.kind.clone(), open.asks.market);
                    self.figures.tally(&kind, market).hibernations += 1;
                }
            }
            Effect::VmResumed { vm, .. } => {
                self.runs(now, *vm);
                if let Some(granted) = self.granted_mut(*vm) {
                    granted.meter.start(now);
                }
            }
            Effect::PriceChanged { kind, price } => {
                let alike = self
                    .open
                    .values_mut()
                    .filter(|open| open.asks.kind == *kind && open.asks.market == Market::Spot);
                for granted in alike.filter_map(|open| open.granted.as_mut()) {
                    granted.meter.reprice(now, *price);
                }
            }
            Effect::Outbid { vm } => {
                if let Some(granted) = self.granted_mut(*vm) {
                    granted.is_outbid = true;
                }
            }
            Effect::Reclaimed { vm } => {
                if let Some(granted) = self.granted_mut(*vm) {
                    granted.is_reclaimed = true;
                }
            }
            Effect::Displaced { vm, by, .. } => {
                if let Some(granted) = self.granted_mut(*vm) {
                    (granted.displaced_by, granted.leaves_for) = (Some(*by), Some(*by));
                }
                if let Some(granted) = self.granted_mut(*by) {
                    granted.waits = true;
                }
            }
            Effect::VmEnded { vm, why, cost } => {
                self.stands(now, *vm);
                self.vms.remove(vm);
                return self.ended(now, *vm, *why, *cost);
            }
            _ => {}
        }
        None
    }

    fn granted_mut(&mut self, vm: VmId) -> Option<&mut Granted> {
        self.open.get_mut(&vm)?.granted.as_mut()
    }

    fn granted(&mut self, vm: VmId, host: HostId, meter: Meter) {
        let Some(open) = self.open.get_mut(&vm) else { return };
        open.granted = Some(Granted {
            host,
            meter,
            ready: None,
            ran: Span::ZERO,
            waits: false,
            waited: Span::ZERO,
            displaced_by: None,
            leaves_for: None,
            is_outbid: false,
            is_reclaimed: false,
        });
        let (kind, market) = (open.asks.kind.clone(), open.asks.market);
        self.figures.tally(&kind, market).granted += 1;
    }

    fn ready(&mut self, now: Time, vm: VmId) {
        let boot = self.catalogue.boot;
        let Some(open) = self.open.get_mut(&vm) else { return };
        let Some(granted) = &mut open.granted else { return };
        granted.meter.start(now);
        granted.ready = Some(now);
        let latency = now.since(open.arrived);
        if granted.waits {
            granted.waited = latency.saturating_sub(boot);
            self.figures.waits.add(granted.waited);
        }
        match open.asks.market {
            Market::OnDemand => self.figures.normal_latency.add(latency),
            Market::Spot => self.figures.preemptible_latency.add(latency),
        }
    }

    /// A VM runs from now on.
    fn runs(&mut self, now: Time, vm: VmId) {
        let Some(machine) = self.vms.get_mut(&vm) else { return };
        if machine.runs_since.replace(now).is_none() {
            let [vcpus, memory] = levels(machine.market);
            let (of_vcpus, of_memory) = (machine.vcpus.into(), machine.memory);
            self.usage().more(vcpus, of_vcpus);
            self.usage().more(memory, of_memory);
        }
    }

    /// The VM does not stand still from now on.
    fn stands(&mut self, now: Time, vm: VmId) {
        let Some(machine) = self.vms.get_mut(&vm) else { return };
        let Some(since) = machine.runs_since.take() else { return };
        let [vcpus, memory] = levels(machine.market);
        let (of_vcpus, of_memory) = (machine.vcpus.into(), machine.memory);
        self.usage().less(vcpus, of_vcpus);
        self.usage().less(memory, of_memory);
        if let Some(granted) = self.granted_mut(vm) {
            granted.ran += now.since(since);
        }
    }

    fn ended(&mut self, now: Time, vm: VmId, why: VmEnd, cost: Money) -> Option<Ended> {
        let Open { request, asks, arrived, granted } = self.open.remove(&vm)?;
        let mut granted = granted?;
        granted.meter.end(now, why.by());
        let end = match why {
            VmEnd::Terminated => RequestEnd::Completed,
            VmEnd::Preempted => RequestEnd::Terminated(self.preempted_for(&granted)),
            VmEnd::HostLost | VmEnd::Failed => RequestEnd::Terminated(why.word()),
            VmEnd::WorkDone | VmEnd::RunOver => RequestEnd::RunOver,
        };
        let Request { kind, market, duration } = asks;
        Some(Ended {
            request,
            vcpus: self.catalogue.get(&kind).map_or(0, |kind| kind.vcpus),
            kind,
            market,
            arrived,
            duration,
            price: granted.meter.price(),
            vm: Some((vm, granted.host)),
            ready: granted.ready,
            at: now,
            end,
            ran: granted.ran,
            waited: granted.waited,
            displaced_by: granted.displaced_by,
            cost,
            forgone: granted.meter.forgone(self.terms.tariff),
        })
    }

    /// Why the provider ended a VM.
    fn preempted_for(&self, granted: &Granted) -> &'static str {
        match granted.leaves_for {
            _ if granted.is_outbid => "outbid",
            _ if granted.is_reclaimed => "unavailable",
            None => "interruption",
            Some(by) => self.tenants.work_on(by).unwrap_or(Work::Requests).name(),
        }
    }

    fn refused(&mut self, now: Time, vm: VmId) -> Option<Ended> {
        let Open { request, asks, arrived, .. } = self.open.remove(&vm)?;
        let Request { kind, market, duration } = asks;
        let offer = self.catalogue.get(&kind);
        let listed = offer.and_then(|offer| self.prices.at(offer, market, now));
        Some(Ended {
            request,
            vcpus: offer.map_or(0, |kind| kind.vcpus),
            price: listed.unwrap_or_default(),
            kind,
            market,
            arrived,
            duration,
            vm: None,
            ready: None,
            at: now,
            end: RequestEnd::Refused,
            ran: Span::ZERO,
            waited: Span::ZERO,
            displaced_by: None,
            cost: Money::ZERO,
            forgone: Money::ZERO,
        })
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
