//! Rules of requested VMs, each by what breaks it: a request with two VMs, a VM that ends too late
//! or too soon, an on-demand VM that is displaced, a host with more on it than it offers, a refusal
//! although there was room.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{
    BillingMeter, InterruptionAction, Market, PlacementRule, PreemptionAction, Prices,
    SchedulerName, SpotPlaces,
};
use dormouse_model::{Effect, Event, Notice, Setup, Step, TenantWork, Tenants, VmEnd, VmRequest};
use dormouse_units::{Bytes, HostId, Money, Price, RequestId, Span, Time, TypeName, VmId};

use super::RuleViolation;
use super::rooms::{HostRooms, Room, RoomQuantity, room};

/// A living VM of any tenant.
#[derive(Debug)]
struct HostedVm {
    market: Market,
    host: HostId,
    room: Room,
    meter: BillingMeter,
    launched: Time,
    ready: Option<Time>,
    runs_since: Option<Time>,
    ran: Span,
    /// Latest time at which the provider ends the VM; `None` until it has given the VM notice.
    due: Option<Time>,
    /// Whether the VM counts as one that can be preempted to make room.
    is_preemptible: bool,
    /// Whether the VM certainly occupies its room on the host: it is ready and not hibernated.
    holds: bool,
    /// Whether the VM had to wait until other VMs left its host.
    has_waited: bool,
}

/// Follows the requests of a run and the room of all its VMs. Call [`Self::see`] for each step of
/// the log in order, then [`Self::finish`].
#[derive(Debug)]
pub struct RequestsChecker<'a> {
    setup: &'a Setup,
    tenants: Tenants,
    prices: Arc<dyn Prices>,
    rule: PlacementRule,
    /// How late a live run may learn of an event, in emulated time.
    lateness: Span,
    rooms: HostRooms,
    vms: BTreeMap<VmId, HostedVm>,
    /// Requests that are not over, with their arrival times, by the VM that each request gets.
    open: BTreeMap<VmId, (Time, VmRequest)>,
    next: RequestId,
    now: Time,
    seq: u64,
    found: Vec<RuleViolation>,
}

impl<'a> RequestsChecker<'a> {
    /// A checker for a run of this whole setup and these tenants, which may learn of events up to
    /// `lateness` of emulated time late (zero in virtual time).
    #[must_use]
    pub fn new(setup: &'a Setup, tenants: Tenants, lateness: Span) -> Self {
        Self {
            setup,
            tenants,
            prices: setup.terms.price_source(),
            rule: setup.terms.placement.placement_rule(),
            lateness,
            rooms: HostRooms::default(),
            vms: BTreeMap::new(),
            open: BTreeMap::new(),
            next: RequestId::default(),
            now: Time::ZERO,
            seq: 0,
            found: Vec::new(),
        }
    }

    /// Number of VM requests that arrived so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.next.get().into()
    }

    /// All violations. If `ended`, requests that are still open are violations too.
    #[must_use]
    pub fn finish(mut self, ended: bool) -> Vec<RuleViolation> {
        let open = self.open.len();
        self.require(!ended || open == 0, || format!("{open} requests never came to an end"));
        self.found
    }

    fn report_violation(&mut self, what: String) {
        self.found.push(RuleViolation { seq: self.seq, at: self.now, what });
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.report_violation(what());
        }
    }

    fn is_requested(&self, vm: VmId) -> bool {
        self.tenants.owns_vm(TenantWork::Requests, vm)
    }

    /// Checks the next step of the log.
    pub fn see(&mut self, step: &Step) {
        self.seq = step.seq;
        let before = self.now;
        self.require(step.at >= before, || format!("time ran backwards from {before}"));
        self.now = step.at;
        let mut asked = None;
        match &step.event {
            Event::HostJoined { host, offer, .. } => self.rooms.join(*host, offer),
            Event::HostLost { host, .. } => self.rooms.leave(*host),
            Event::Requested { request, asks } if !step.effects.contains(&Effect::Stale) => {
                asked = self.add_request(*request, asks);
            }
            _ => {}
        }
        for effect in &step.effects {
            self.check_effect(step, effect);
        }
        for notice in &step.notices {
            if let Notice::LaunchRefused { vm, .. } = notice
                && self.is_requested(*vm)
            {
                self.check_refusal(*vm);
            }
        }
        if let Some(vm) = asked
            && self.open.contains_key(&vm)
            && !self.vms.contains_key(&vm)
        {
            self.open.remove(&vm);
            // Requests that arrive when the run is over get no answer.
            let is_over = step.decisions.is_empty();
            self.require(is_over, || format!("the request of {vm} is neither granted nor refused"));
        }
    }

    fn add_request(&mut self, request: RequestId, asks: &VmRequest) -> Option<VmId> {
        let next = self.next;
        self.require(request == next, || format!("{request} comes where {next} should"));
        self.next = request.next();
        let vm = self.tenants.vm_of(request)?;
        self.open.insert(vm, (self.now, asks.clone()));
        Some(vm)
    }

    fn check_effect(&mut self, step: &Step, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, host, .. } => {
                self.check_launch(*vm, (kind, *market, *price, *host), *bid);
            }
            Effect::VmReady { vm } => self.check_ready(*vm),
            Effect::VmHibernated { vm, .. } => self.on_hibernated(*vm),
            Effect::VmResumed { vm, .. } => self.on_resumed(*vm),
            Effect::VmEnded { vm, why, cost } => self.check_vm_end(*vm, *why, *cost),
            Effect::Displaced { vm, by, action } => {
                self.check_displacement(step, (*vm, *by), *action);
            }
            Effect::Outbid { vm } | Effect::Reclaimed { vm } => self.give_notice(*vm),
            Effect::Interrupted { action: InterruptionAction::Preempt, vms, .. } => {
                vms.iter().for_each(|vm| self.give_notice(*vm));
            }
            Effect::Interrupted { action: InterruptionAction::Hibernate, vms, .. } => {
                vms.iter().for_each(|vm| self.make_unpreemptible(*vm));
            }
            Effect::PriceChanged { kind, price } => {
                let (now, alike) = (self.now, self.spot_of(kind));
                for vm in alike {
                    if let Some(there) = self.vms.get_mut(&vm) {
                        there.meter.change_price(now, *price);
                    }
                }
            }
            _ => {}
        }
    }

    fn spot_of(&self, kind: &TypeName) -> Vec<VmId> {
        let is_alike = |vm: &VmId| self.open.get(vm).is_some_and(|(_, asks)| asks.kind == *kind);
        let spot = self.vms.iter().filter(|(_, there)| there.market == Market::Spot);
        spot.map(|(vm, _)| *vm).filter(is_alike).collect()
    }

    /// Room that a VM of this type takes on its host, as the placement counts it.
    fn room_of(&self, kind: &TypeName, market: Market) -> Room {
        let Some(offer) = self.setup.catalogue.get(kind) else { return [0; 3] };
        let is_background =
            self.setup.terms.spot == SpotPlaces::Background && market == Market::Spot;
        room(&self.rule.room_of(offer, Bytes::ZERO, is_background))
    }

    fn check_launch(
        &mut self,
        vm: VmId,
        of: (&TypeName, Market, Price, HostId),
        bid: Option<Price>,
    ) {
        let (kind, market, price, host) = of;
        self.require(!self.vms.contains_key(&vm), || format!("{vm} is launched twice"));
        if self.is_requested(vm) {
            match self.open.get(&vm) {
                None => {
                    self.report_violation(format!(
                        "{vm} is launched, but no customer requested it"
                    ));
                }
                Some((at, asks)) => {
                    let fits = *at == self.now && asks.kind == *kind && asks.market == market;
                    self.require(fits, || format!("{vm} is not what was requested"));
                }
            }
            let offer = self.setup.catalogue.get(kind);
            let listed = offer.and_then(|offer| self.prices.price_at(offer, market, self.now));
            self.require(listed == Some(price), || {
                format!("{vm} costs {price}, not what it should")
            });
        }
        self.require(self.rooms.has(host), || format!("{vm} is on {host}, which is not there"));
        let memory = self.setup.catalogue.get(kind).map_or(Bytes::ZERO, |kind| kind.memory);
        let disk = self.setup.terms.billing.disk_price(memory);
        let there = HostedVm {
            market,
            host,
            room: self.room_of(kind, market),
            meter: BillingMeter::start_at_launch(self.now, price, self.setup.terms.billing)
                .at_most(bid)
                .with_stopped_disk(disk),
            launched: self.now,
            ready: None,
            runs_since: None,
            ran: Span::ZERO,
            due: None,
            is_preemptible: market == Market::Spot,
            holds: false,
            has_waited: false,
        };
        self.rooms.change(host, RoomQuantity::Taken, there.room, true);
        if there.is_preemptible {
            self.rooms.change(
                host,
                RoomQuantity::Preemptible,
                self.leaves_to_others(there.room),
                true,
            );
        }
        self.vms.insert(vm, there);
    }

    /// Room that other VMs certainly get when a spot VM is commanded to leave: a VM that hibernates keeps its disk.
    fn leaves_to_others(&self, [vcpus, memory, disk]: Room) -> Room {
        let hibernates = self.setup.terms.preemption == PreemptionAction::Hibernate;
        [vcpus, memory, if hibernates { 0 } else { disk }]
    }

    /// Counts the VM's room as certainly occupied, and requires that the VM fits on the host.
    fn hold_room(&mut self, vm: VmId) {
        let Some(there) = self.vms.get_mut(&vm).filter(|there| !there.holds) else { return };
        there.holds = true;
        let (host, room) = (there.host, there.room);
        let fits = self.rooms.change(host, RoomQuantity::Held, room, true);
        self.require(fits, || format!("{host} has less than its VMs take once {vm} is there"));
    }

    fn release_room(&mut self, vm: VmId) {
        if let Some(there) = self.vms.get_mut(&vm)
            && std::mem::take(&mut there.holds)
        {
            let (host, room) = (there.host, there.room);
            self.rooms.change(host, RoomQuantity::Held, room, false);
        }
    }

    /// Stops counting the VM as one that can be preempted to make room.
    fn make_unpreemptible(&mut self, vm: VmId) {
        if let Some(there) = self.vms.get_mut(&vm)
            && std::mem::take(&mut there.is_preemptible)
        {
            let (host, room) = (there.host, there.room);
            self.rooms.change(host, RoomQuantity::Preemptible, self.leaves_to_others(room), false);
        }
    }

    fn check_ready(&mut self, vm: VmId) {
        let (now, boot) = (self.now, self.setup.catalogue.boot);
        self.hold_room(vm);
        let Some(there) = self.vms.get_mut(&vm) else {
            return self.report_violation(format!("{vm} is ready but was never launched"));
        };
        let (took, waited) = (now.since(there.launched), there.has_waited);
        let is_first = there.ready.is_none();
        (there.ready, there.runs_since) = (Some(now), Some(now));
        there.meter.start_charging(now);
        self.require(is_first, || format!("{vm} is ready twice"));
        let is_virtual = self.lateness == Span::ZERO;
        let is_right = took >= boot && (waited || !is_virtual || took == boot);
        self.require(is_right, || format!("{vm} boots for {took}, not {boot}"));
    }

    fn on_hibernated(&mut self, vm: VmId) {
        self.release_room(vm);
        self.make_unpreemptible(vm);
        let now = self.now;
        if let Some(there) = self.vms.get_mut(&vm) {
            there.stop_running(now);
            there.meter.pause_charging(now);
        }
    }

    fn on_resumed(&mut self, vm: VmId) {
        let now = self.now;
        self.hold_room(vm);
        if let Some(there) = self.vms.get_mut(&vm) {
            there.runs_since = Some(now);
            there.meter.start_charging(now);
            if there.due.is_none() && there.market == Market::Spot && !there.is_preemptible {
                there.is_preemptible = true;
                let (host, room) = (there.host, there.room);
                self.rooms.change(
                    host,
                    RoomQuantity::Preemptible,
                    self.leaves_to_others(room),
                    true,
                );
            }
        }
    }

    fn give_notice(&mut self, vm: VmId) {
        let due = self.now + self.setup.preemption_notice;
        self.make_unpreemptible(vm);
        if let Some(there) = self.vms.get_mut(&vm) {
            there.due.get_or_insert(due);
        }
    }

    fn check_displacement(
        &mut self,
        step: &Step,
        (vm, by): (VmId, VmId),
        action: InterruptionAction,
    ) {
        let is_new = |effect: &Effect| matches!(effect, Effect::VmLaunched { vm, .. } if *vm == by);
        let is_launched = step.effects.iter().any(is_new);
        self.require(is_launched, || format!("{vm} is displaced by {by}, which is not launched"));
        let of = |vm| self.vms.get(&vm).map(|there| (there.market, there.host));
        let (Some(victim), Some(other)) = (of(vm), of(by)) else {
            return self.report_violation(format!(
                "{vm} is displaced by {by}, but one of the two does not exist"
            ));
        };
        self.require(victim.0 == Market::Spot, || {
            format!("{vm} is displaced, but it is not a spot VM")
        });
        self.require(other.0 == Market::OnDemand, || {
            format!("{vm} is displaced by a spot VM, {by}")
        });
        self.require(victim.1 == other.1, || {
            format!("{vm} is displaced on another host than {by}'s")
        });
        let can_be = self.vms.get(&vm).is_some_and(|there| there.due.is_none());
        self.require(can_be, || format!("{vm} is displaced though it leaves already"));
        let is_allowed = self.rule.scheduler != SchedulerName::Filter;
        self.require(is_allowed, || format!("{vm} is displaced, which this scheduler never does"));
        match action {
            InterruptionAction::Preempt => self.give_notice(vm),
            InterruptionAction::Hibernate
            | InterruptionAction::Resume
            | InterruptionAction::Rebalance => self.make_unpreemptible(vm),
        }
        if let Some(there) = self.vms.get_mut(&by) {
            there.has_waited = true;
        }
    }

    fn check_vm_end(&mut self, vm: VmId, why: VmEnd, cost: Money) {
        self.release_room(vm);
        self.make_unpreemptible(vm);
        let Some(mut there) = self.vms.remove(&vm) else {
            return self.report_violation(format!("{vm} ends but was never launched"));
        };
        self.rooms.change(there.host, RoomQuantity::Taken, there.room, false);
        there.stop_running(self.now);
        there.meter.end_charging(self.now, why.ended_by());
        if why == VmEnd::Preempted {
            let latest = there.due.map(|due| due + self.lateness);
            match latest {
                None => {
                    self.report_violation(format!("{vm} is taken away without a cause in the log"));
                }
                Some(at) => {
                    let now = self.now;
                    self.require(now <= at, || format!("{vm} outlives its notice, to {at}"));
                }
            }
        }
        let Some((_, asks)) = self.open.remove(&vm) else { return };
        let owed = there.meter.settled_cost(self.setup.terms.tariff);
        self.require(owed == cost, || format!("{vm} cost {cost}, its intervals {owed}"));
        let (ran, wanted) = (there.ran, asks.duration);
        let is_in_time = ran <= wanted + self.lateness;
        self.require(is_in_time, || format!("{vm} ran for {ran}, and was wanted for {wanted}"));
        let is_whole = why != VmEnd::Terminated || ran >= wanted;
        self.require(is_whole, || format!("{vm} is given back after {ran} of {wanted}"));
    }

    fn check_refusal(&mut self, vm: VmId) {
        let Some((_, asks)) = self.open.remove(&vm) else {
            return self.report_violation(format!("{vm} is refused, but no customer requested it"));
        };
        let Setup { terms, catalogue, .. } = self.setup;
        let offer = catalogue.get(&asks.kind);
        let is_offered =
            offer.is_some_and(|offer| self.prices.price_at(offer, asks.market, self.now).is_some());
        // The places of processors and memory that is filled are not followed here.
        let is_followed = terms.spot == SpotPlaces::Own
            && self.setup.memory_filled().is_empty()
            && is_offered
            && !self.may_be_unsold(&asks);
        let may_preempt =
            asks.market == Market::OnDemand && self.rule.scheduler != SchedulerName::Filter;
        let want = self.room_of(&asks.kind, asks.market);
        if is_followed && let Some(host) = self.rooms.with_room(want, may_preempt) {
            let (market, kind) = (asks.market, asks.kind);
            self.report_violation(format!(
                "{vm}, {market} {kind}, is refused though {host} has room for it"
            ));
        }
    }
}

impl RequestsChecker<'_> {
    /// Whether the provider may refuse a VM although there is room: the VM costs more than the default bid, or there
    /// may be no more VMs of its type (this check does not follow that limit).
    fn may_be_unsold(&self, asks: &VmRequest) -> bool {
        let Setup { terms, catalogue, .. } = self.setup;
        let Some(offer) = catalogue.get(&asks.kind) else { return false };
        let price = self.prices.price_at(offer, asks.market, self.now);
        let bid = offer.default_bid(asks.market, terms.default_bid);
        let is_dear = price.zip(bid).is_some_and(|(price, bid)| price > bid);
        is_dear || asks.market == Market::Spot && terms.availability.contains_key(&asks.kind)
    }
}

impl HostedVm {
    fn stop_running(&mut self, now: Time) {
        if let Some(since) = self.runs_since.take() {
            self.ran += now.since(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dormouse_cloud::{InstanceType, ResourceVector, SpotAvailability, VmLimits};
    use dormouse_model::UsageInformation;
    use dormouse_units::Ppm;

    use super::*;

    /// Whether the checker objects to the refusal of a request for a spot VM beside an empty host,
    /// in a setup changed by `change`.
    fn is_wrong(change: impl FnOnce(&mut Setup)) -> bool {
        let cents = |cents: u64| Some(Price::from_nanos_per_hour(cents * 10_000_000));
        let kind = InstanceType {
            name: "a".into(),
            vcpus: 1,
            memory: Bytes::ZERO,
            disk: Bytes::ZERO,
            mflops: 1,
            on_demand: cents(10),
            spot: cents(5),
            limits: VmLimits { spot: 9, on_demand: 9 },
            burstable: None,
        };
        let mut setup = Setup::of_jobs(1, UsageInformation::Exact, 1);
        setup.catalogue.types = BTreeMap::from([(kind.name.clone(), kind)]);
        change(&mut setup);
        let tenants = Tenants::from([TenantWork::Bag, TenantWork::Requests]);
        let mut checker = RequestsChecker::new(&setup, tenants.clone(), Span::ZERO);
        let host = HostId::new(0);
        let (name, offer) = ("h".to_owned(), ResourceVector::of_vcpus(4));
        let request = RequestId::new(0);
        let asks =
            VmRequest { kind: "a".into(), market: Market::Spot, duration: Span::from_secs(9) };
        let events = [Event::HostJoined { host, name, offer }, Event::Requested { request, asks }];
        for (seq, event) in (0..).zip(events) {
            let mut step = Step::blank();
            step.begin_step(seq, Time::ZERO, event);
            if let (1, Some(vm)) = (seq, tenants.vm_of(request)) {
                let (why, unavailable) = (String::new(), false);
                step.notices.push(Notice::LaunchRefused { vm, why, unavailable });
            }
            checker.see(&step);
        }
        !checker.finish(true).is_empty()
    }

    #[test]
    fn a_request_is_refused_beside_free_room_only_where_its_vm_is_not_sold() {
        assert!(is_wrong(|_| ()));
        assert!(is_wrong(|setup| setup.terms.default_bid = Some(Ppm::new(500_000))));
        assert!(!is_wrong(|setup| setup.terms.default_bid = Some(Ppm::new(400_000))));
        let none = SpotAvailability::new(vec![(Time::ZERO, 0)]);
        assert!(!is_wrong(|setup| drop(setup.terms.availability.insert("a".into(), none))));
    }
}
