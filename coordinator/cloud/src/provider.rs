//! The provider: launches VMs and tracks each through booting, running, hibernation and
//! termination.

mod capacity;
mod interruptions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dormouse_units::{
    Bytes, HostId, Money, Ppm, Price, Stream, Tier, Time, TypeName, VmId, Window,
};

pub use capacity::AvailabilityChange;

use crate::{
    Availability, Billing, Catalogue, EndedBy, Fleet, Host, LaunchError, LaunchRequest, Launched,
    Market, Meter, PlacementRule, Placer, Preemption, Prices, SpotPlaces, TariffName, Terms, Tiers,
    Vm, VmState, Want, Yields,
};

/// A provider of VMs with its catalogue, terms, hosts, and the VMs it has launched.
///
/// Use: make it with [`Provider::new`], add hosts with [`Provider::host_joined`], and report every
/// change of a VM in order of time ([`Provider::launch`], [`Provider::booted`],
/// [`Provider::hibernate`], …, [`Provider::terminated`]).
#[derive(Debug)]
pub struct Provider {
    catalogue: Catalogue,
    /// Memory that VMs of each type really fill, if that is limited.
    filled: BTreeMap<TypeName, Bytes>,
    placement: PlacementRule,
    placer: Box<dyn Placer>,
    preemption: Preemption,
    /// Seed of the random choice between hosts.
    seed: u64,
    prices: Arc<dyn Prices>,
    tariff: TariffName,
    billing: Billing,
    default_bid: Option<Ppm>,
    fleet: Fleet,
    /// Assignment of VMs to processors if spot VMs run in the background; otherwise `None`.
    tiers: Option<Tiers>,
    /// VMs by id. They are boxed because a long-lived VM keeps a slot for each later one.
    vms: Window<Box<Vm>, VmId>,
    alive: BTreeSet<VmId>,
    /// Ids of living VMs by type and market; empty sets are removed.
    alike: BTreeMap<(TypeName, Market), BTreeSet<VmId>>,
    /// Number of living VMs that count against the limits, by type and market.
    limited: BTreeMap<(TypeName, Market), u32>,
    /// Total money owed for forgotten VMs.
    settled: Money,
    /// Next price change of each type that is watched or has spot VMs.
    changes: BTreeSet<(Time, TypeName)>,
    /// Types whose spot price is watched even without VMs.
    watched: BTreeSet<TypeName>,
    /// Availability over time of each type that is scarce.
    availability: BTreeMap<TypeName, Availability>,
    /// Number of spot VMs that may exist at present, for scarce types.
    available: BTreeMap<TypeName, u32>,
    /// Next change of the availability of each scarce type.
    availability_changes: BTreeSet<(Time, TypeName)>,
}

/// A change of a type's spot price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceChange {
    /// The instance type whose price has changed.
    pub kind: TypeName,
    /// The new spot price per hour.
    pub price: Price,
    /// VMs whose bid is exceeded and that have no notice yet.
    pub outbid: Vec<VmId>,
}

impl Provider {
    /// A provider of these types, without hosts yet.
    #[must_use]
    pub fn new(catalogue: Catalogue, terms: &Terms) -> Self {
        Self {
            catalogue,
            filled: BTreeMap::new(),
            placement: terms.placement.rule(),
            placer: terms.placement.placer(),
            preemption: terms.preemption,
            seed: 0,
            prices: terms.prices(),
            tariff: terms.tariff,
            billing: terms.billing,
            default_bid: terms.default_bid,
            fleet: Fleet::default(),
            tiers: (terms.spot == SpotPlaces::Background).then(Tiers::default),
            vms: Window::default(),
            alive: BTreeSet::new(),
            alike: BTreeMap::new(),
            limited: BTreeMap::new(),
            settled: Money::ZERO,
            changes: BTreeSet::new(),
            watched: BTreeSet::new(),
            available: terms
                .availability
                .iter()
                .filter_map(|(kind, trace)| Some((kind.clone(), trace.at(Time::ZERO)?)))
                .collect(),
            availability_changes: terms
                .availability
                .iter()
                .filter_map(|(kind, trace)| Some((trace.next_change(Time::ZERO)?, kind.clone())))
                .collect(),
            availability: terms.availability.clone(),
        }
    }

    /// The provider with the spot prices of these types watched even without VMs. Types that are
    /// not sold as spot VMs are ignored.
    #[must_use]
    pub fn watched(mut self, kinds: impl IntoIterator<Item = TypeName>) -> Self {
        let offered = |kind: &TypeName| {
            let offer = self.catalogue.get(kind);
            offer.is_some_and(|offer| offer.price(Market::Spot).is_some())
        };
        self.watched = kinds.into_iter().filter(offered).collect();
        let next =
            |kind: &TypeName| Some((self.prices.next_change(kind, Time::ZERO)?, kind.clone()));
        self.changes = self.watched.iter().filter_map(next).collect();
        self
    }

    /// True if each change of this type's spot price is watched.
    #[must_use]
    pub fn is_watched(&self, kind: &TypeName) -> bool {
        self.watched.contains(kind)
    }

    /// Present spot prices of the watched types.
    #[must_use]
    pub fn watched_prices(&self, now: Time) -> Vec<(TypeName, Price)> {
        let price = |kind: &TypeName| {
            Some((kind.clone(), self.prices.at(self.catalogue.get(kind)?, Market::Spot, now)?))
        };
        self.watched.iter().filter_map(price).collect()
    }

    /// The provider with limits on really filled memory: each VM of these types fills so much,
    /// whatever its nominal size, and goes only on hosts with that much left.
    #[must_use]
    pub fn filling(self, filled: BTreeMap<TypeName, Bytes>) -> Self {
        Self { filled, ..self }
    }

    /// The provider with this seed for the random choice between equally good hosts.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The catalogue of instance types.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Adds an empty host.
    pub fn host_joined(&mut self, id: HostId, host: Host) {
        self.fleet.join(id, host);
        if let Some(tiers) = &mut self.tiers {
            tiers.join(id, host.vcpus);
        }
    }

    /// Removes a host; its VMs are terminated and returned.
    pub fn host_lost(&mut self, now: Time, id: HostId) -> Vec<VmId> {
        let lost = self.fleet.leave(id);
        for &vm in &lost {
            self.terminated(now, vm, EndedBy::Provider);
        }
        if let Some(tiers) = &mut self.tiers {
            tiers.leave(id);
        }
        lost
    }

    /// Assignment of VMs to processors if spot VMs run in the background; otherwise `None`.
    #[must_use]
    pub const fn tiers(&self) -> Option<&Tiers> {
        self.tiers.as_ref()
    }

    /// All launched VMs that are not forgotten.
    pub fn vms(&self) -> impl Iterator<Item = (VmId, &Vm)> {
        self.vms.iter().map(|(id, vm)| (id, &**vm))
    }

    /// The VMs that are not terminated.
    pub fn alive(&self) -> impl ExactSizeIterator<Item = (VmId, &Vm)> {
        self.alive.iter().map(|id| (*id, &*self.vms[*id]))
    }

    /// The VM of this id; `None`: none was launched, or it is forgotten.
    #[must_use]
    pub fn vm(&self, id: VmId) -> Option<&Vm> {
        self.vms.get(id).map(Box::as_ref)
    }

    /// Launches a VM for a user.
    ///
    /// # Errors
    ///
    /// See [`LaunchError`]; the provider is then unchanged.
    pub fn launch(
        &mut self,
        now: Time,
        id: VmId,
        asked: &LaunchRequest<'_>,
    ) -> Result<Launched, LaunchError> {
        let LaunchRequest { kind, market, bid, limited } = *asked;
        if self.vm(id).is_some() {
            return Err(LaunchError::UsedId(id));
        }
        let Some(offer) = self.catalogue.get(kind) else {
            return Err(LaunchError::UnknownType {
                kind: kind.clone(),
                known: self.catalogue.names(),
            });
        };
        let Some(price) = self.prices.at(offer, market, now) else {
            return Err(LaunchError::NotOffered { kind: kind.clone(), market });
        };
        let bid = bid.or_else(|| offer.bid(market, self.default_bid));
        if let Some(bid) = bid.filter(|bid| price > *bid) {
            return Err(LaunchError::Outbid { kind: kind.clone(), market, price, bid });
        }
        let (limit, like) = (offer.limit(market), (kind.clone(), market));
        if limited && self.limited.get(&like).copied().unwrap_or_default() >= limit {
            return Err(LaunchError::Limit { kind: kind.clone(), market, limit });
        }
        if market == Market::Spot && !self.is_available(kind) {
            let most = self.available.get(kind).copied().unwrap_or_default();
            return Err(LaunchError::Unavailable { kind: kind.clone(), most });
        }
        let filled = self.filled.get(kind).copied().unwrap_or_default();
        let (vcpus, whole) = (offer.vcpus, Host { filled, ..offer.room() });
        // A VM in the background takes nothing of the foreground.
        let is_background = self.tiers.is_some() && market == Market::Spot;
        let room = self.placement.room_of(offer, filled, is_background);
        let chosen = match &self.tiers {
            Some(tiers) if is_background => tiers
                .for_background(vcpus, |host| {
                    let kept = self.parked_vcpus(host);
                    self.fleet.spare(host).holds(&room)
                        && tiers.free(host, Tier::Background) >= vcpus.saturating_add(kept)
                })
                .map(|host| (host, Vec::new())),
            _ => {
                let chance = &mut Stream::new(self.seed, "placement", id.get().into());
                self.placer.choose(now, &Want { room, market }, &self.fleet, chance)
            }
        };
        let Some((host, victims)) = chosen else {
            return Err(LaunchError::NoCapacity { kind: kind.clone(), room: whole });
        };
        if let Some(tiers) = &mut self.tiers {
            let tier = if is_background { Tier::Background } else { Tier::Foreground };
            tiers.take(host, id, tier, vcpus);
        }
        for &victim in &victims {
            self.displace(victim);
        }
        let at_once = self.fleet.place(host, id, room, market);
        let meter = Meter::launched(now, price, self.billing).at_most(bid);
        self.fleet.charged(host, id, meter.runs_since());
        let vm = Vm {
            kind: kind.clone(),
            market,
            bid,
            host,
            state: VmState::Booting,
            launched: now,
            usable: None,
            size: room,
            limited,
            has_notice: false,
            is_displaced: false,
            hibernates: None,
            tariff: self.tariff,
            meter,
            surcharge: Money::ZERO,
        };
        self.vms.insert(id, Box::new(vm));
        self.alive.insert(id);
        if limited {
            *self.limited.entry(like.clone()).or_default() += 1;
        }
        let alike = self.alike.entry(like).or_default();
        alike.insert(id);
        if market == Market::Spot && alike.len() == 1 {
            let change = self.prices.next_change(kind, now);
            self.changes.extend(change.map(|at| (at, kind.clone())));
        }
        let ready_at = at_once.then(|| now + self.catalogue.boot);
        Ok(Launched { host, price, bid, ready_at, victims })
    }

    /// VMs that got the room they waited for since the last call, and now boot.
    pub fn placed(&mut self) -> Vec<VmId> {
        self.fleet.placed()
    }

    /// Records that a VM has booted: it is usable and charged from now on. False if it wasn't
    /// booting.
    pub fn booted(&mut self, now: Time, id: VmId) -> bool {
        self.starts(now, id, VmState::Booting)
    }

    /// Records that the provider has given notice of this VM's end.
    pub fn given_notice(&mut self, id: VmId) {
        let Some(vm) = self.vms.get_mut(id) else { return };
        (vm.has_notice, vm.is_displaced) = (true, false);
        let host = vm.host;
        self.fleet.unpark(host, id);
        self.fleet.ends(host, id);
    }

    /// Records that a spot VM makes room for another: it hibernates or has its notice.
    fn displace(&mut self, id: VmId) {
        if self.preemption == Preemption::Hibernate && self.hibernate(id) {
            if let Some(vm) = self.vms.get_mut(id) {
                vm.is_displaced = true;
            }
        } else {
            self.given_notice(id);
        }
    }

    /// True if a VM waits for room that others have to leave.
    #[must_use]
    pub fn waits_for_room(&self, id: VmId) -> bool {
        self.vm(id).is_some_and(|vm| self.fleet.waits(vm.host, id))
    }

    /// Resumes the VMs that hibernated to make room and can have it back; returns them. On each
    /// host they are tried in the order in which they froze.
    pub fn give_back(&mut self, now: Time) -> Vec<VmId> {
        let (mut back, regained) = (Vec::new(), self.fleet.regained());
        // As after nearly every event.
        if regained.is_empty() {
            return back;
        }
        for host in regained {
            let parked: Vec<_> = self.fleet.parked(host).collect();
            back.extend(
                parked.into_iter().filter(|vm| self.may_resume(now, *vm) && self.resume(*vm)),
            );
        }
        back
    }

    /// Marks a VM that hibernated to make room as ready to resume.
    pub fn look_again(&mut self, id: VmId) {
        if let Some(host) = self.vm(id).map(|vm| vm.host) {
            self.fleet.look_again(host);
        }
    }

    /// True if a VM has been hibernated for long enough to resume.
    fn may_resume(&self, now: Time, id: VmId) -> bool {
        let state = self.vm(id).map(|vm| vm.state);
        matches!(state, Some(VmState::Hibernated { since }) if now >= since + self.catalogue.hibernation)
    }

    /// Time of the next change of a price that is paid or watched; `None`: there is none.
    #[must_use]
    pub fn next_price_change(&self) -> Option<Time> {
        self.changes.first().map(|(at, _)| *at)
    }

    /// Time of the next change of a type's price after `now`, with the new price; `None`: there is
    /// none.
    #[must_use]
    pub fn next_price(&self, now: Time, kind: &TypeName, market: Market) -> Option<(Time, Price)> {
        if market == Market::OnDemand {
            return None;
        }
        let at = self.prices.next_change(kind, now)?;
        Some((at, self.prices.at(self.catalogue.get(kind)?, market, at)?))
    }

    /// Applies the price changes due by `now` to spot VMs, and returns those that are paid or
    /// watched.
    pub fn change_prices(&mut self, now: Time) -> Vec<PriceChange> {
        let mut changed = Vec::new();
        while self.next_price_change().is_some_and(|at| at <= now) {
            let Some((_, kind)) = self.changes.pop_first() else { break };
            let next = self.prices.next_change(&kind, now);
            self.changes.extend(next.map(|at| (at, kind.clone())));
            let offer = self.catalogue.get(&kind);
            let price = offer.and_then(|offer| self.prices.at(offer, Market::Spot, now));
            let Some(price) = price else { continue };
            let mut outbid = Vec::new();
            for id in self.alike.get(&(kind.clone(), Market::Spot)).into_iter().flatten() {
                let Some(vm) = self.vms.get_mut(*id) else { continue };
                vm.meter.reprice(now, price);
                // One that hibernated for its price waits for another.
                let waits = vm.hibernates == Some(true)
                    && !matches!(vm.state, VmState::Booting | VmState::Running);
                if !vm.has_notice && !waits && vm.bid.is_some_and(|bid| price > bid) {
                    outbid.push(*id);
                }
            }
            for &vm in &outbid {
                if !self.hibernates_instead(vm) {
                    self.given_notice(vm);
                }
            }
            changed.push(PriceChange { kind, price, outbid });
        }
        changed
    }

    /// Records that a running VM is told to hibernate; false if it can't be.
    pub fn hibernate(&mut self, id: VmId) -> bool {
        let told =
            self.transit(id, |state| (state == VmState::Running).then_some(VmState::Hibernating));
        let is_told = told.is_some();
        self.look_at_yield(id);
        is_told
    }

    /// Records that a VM is frozen: charging stops, and its vCPUs and memory become free. False if
    /// it wasn't told to hibernate.
    pub fn hibernated(&mut self, now: Time, id: VmId) -> bool {
        let frozen = self.transit(id, |state| {
            (state == VmState::Hibernating).then_some(VmState::Hibernated { since: now })
        });
        let Some(vm) = frozen else { return false };
        vm.meter.freeze(now);
        let kind = vm.kind.clone();
        let (host, room, is_displaced) =
            (vm.host, vm.size.left_while_hibernated(), vm.is_displaced);
        self.fleet.release(host, id, room);
        self.fleet.charged(host, id, None);
        if is_displaced {
            self.fleet.park(host, id, room);
        }
        if let Some(tiers) = &mut self.tiers {
            tiers.leave_places(id);
        }
        self.places_came_free(&kind);
        true
    }

    /// Records that a hibernated VM is told to resume. False if it can't be: it isn't hibernated,
    /// or its host's vCPUs, memory or places are taken or reserved for VMs that made room for
    /// others ("when there is enough available resource", Burst-HADS, I).
    pub fn resume(&mut self, id: VmId) -> bool {
        let Some(vm) = self.vm(id) else { return false };
        let (host, room) = (vm.host, vm.size.left_while_hibernated());
        let free = if vm.is_displaced { self.fleet.free(host) } else { self.fleet.spare(host) };
        let is_outbid =
            vm.hibernates == Some(true) && vm.bid.is_some_and(|bid| vm.meter.price() > bid);
        let is_there = vm.market != Market::Spot || self.is_available(&vm.kind) && !is_outbid;
        if !matches!(vm.state, VmState::Hibernated { .. }) || !free.holds(&room) || !is_there {
            return false;
        }
        // Places that VMs which made room for others will need are kept for them, as their room is.
        let kept = if vm.is_displaced { 0 } else { self.parked_vcpus(host) };
        let vcpus = self.vcpus_of(id);
        if let Some(tiers) = &mut self.tiers
            && (tiers.free(host, Tier::Background) < vcpus.saturating_add(kept)
                || !tiers.take(host, id, Tier::Background, vcpus))
        {
            return false;
        }
        self.fleet.unpark(host, id);
        self.fleet.take(host, id, room);
        if let Some(vm) = self.vms.get_mut(id) {
            (vm.state, vm.is_displaced) = (VmState::Resuming, false);
        }
        true
    }

    /// Records that a resumed VM runs again: charging starts. False if it wasn't told to resume.
    pub fn resumed(&mut self, now: Time, id: VmId) -> bool {
        self.starts(now, id, VmState::Resuming)
    }

    /// Records that a VM is gone, ended by `by`: charging stops. False if it was gone already.
    pub fn terminated(&mut self, now: Time, id: VmId, by: EndedBy) -> bool {
        let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.is_alive()) else { return false };
        vm.state = VmState::Terminated { at: now };
        vm.meter.end(now, by);
        self.settled += vm.owed(now);
        self.fleet.remove(vm.host, id);
        if let Some(tiers) = &mut self.tiers {
            tiers.leave_places(id);
        }
        self.alive.remove(&id);
        let (like, limited) = ((vm.kind.clone(), vm.market), vm.limited);
        if limited && let Some(count) = self.limited.get_mut(&like) {
            *count = count.saturating_sub(1);
        }
        if let Some(alike) = self.alike.get_mut(&like) {
            alike.remove(&id);
            if alike.is_empty() {
                self.alike.remove(&like);
                if like.1 == Market::Spot && !self.watched.contains(&like.0) {
                    self.changes.retain(|(_, kind)| *kind != like.0);
                }
            }
        }
        self.places_came_free(&like.0);
        true
    }

    /// Sets the total money owed for surplus credits of a living VM.
    pub fn surcharge(&mut self, id: VmId, cost: Money) {
        if let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.is_alive()) {
            vm.surcharge = cost;
        }
    }

    /// Forgets a VM that is gone; returns the money owed for it, which stays in the total.
    pub fn forget(&mut self, id: VmId) -> Money {
        match self.vm(id) {
            Some(vm) if !vm.is_alive() => {
                let owed = vm.owed(Time::from_micros(u64::MAX));
                self.vms.remove(id);
                owed
            }
            _ => Money::ZERO,
        }
    }

    /// Money owed for all VMs up to `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.settled + self.alive().map(|(_, vm)| vm.owed(now)).sum()
    }

    /// Changes a VM from state `from` to running, and starts charging if necessary; false if it is
    /// in another state.
    fn starts(&mut self, now: Time, id: VmId, from: VmState) -> bool {
        let running = self.transit(id, |state| (state == from).then_some(VmState::Running));
        let Some(vm) = running else { return false };
        vm.usable.get_or_insert(now);
        vm.meter.start(now);
        let (host, since) = (vm.host, vm.meter.runs_since());
        self.fleet.charged(host, id, since);
        self.look_at_yield(id);
        true
    }

    /// Updates what others can get of a spot VM's room in its present state.
    fn look_at_yield(&mut self, id: VmId) {
        let Some(vm) = self.vm(id).filter(|vm| vm.market == Market::Spot) else { return };
        if self.preemption == Preemption::Hibernate && !vm.has_notice {
            let yields = match vm.state {
                VmState::Booting => Yields::All,
                VmState::Running => Yields::Hibernating,
                _ => Yields::Nothing,
            };
            let host = vm.host;
            self.fleet.yields(host, id, yields);
        }
    }

    /// vCPUs of the VMs on a host that made room for others and wait to resume.
    fn parked_vcpus(&self, host: HostId) -> u32 {
        self.fleet.parked(host).map(|vm| self.vcpus_of(vm)).sum()
    }

    /// vCPUs of a VM's type, even if they don't count as room on its host.
    fn vcpus_of(&self, id: VmId) -> u32 {
        let kind = self.vm(id).and_then(|vm| self.catalogue.get(&vm.kind));
        kind.map_or(0, |kind| kind.vcpus)
    }

    fn transit(
        &mut self,
        id: VmId,
        next: impl FnOnce(VmState) -> Option<VmState>,
    ) -> Option<&mut Vm> {
        let vm = self.vms.get_mut(id)?;
        vm.state = next(vm.state)?;
        Some(&mut **vm)
    }
}

#[cfg(test)]
mod tests;
