//! The provider: launches VMs and tracks each through booting, running, hibernation and
//! termination.

mod capacity;
mod interruptions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dormouse_units::{
    Bytes, HostId, Money, Ppm, Price, RandomStream, Tier, Time, TypeName, VmId, Window,
};

pub use capacity::AvailabilityChange;

use crate::{
    BillingMeter, BillingTerms, Catalogue, EndedBy, GrantedLaunch, HostFleet, HostTiers,
    LaunchError, LaunchRequest, Market, PlacementRequest, PlacementRule, Placer, PreemptionAction,
    Prices, ProviderTerms, ProviderVm, ProviderVmState, ResourceVector, SpotAvailability,
    SpotPlaces, TariffName, YieldedRoom,
};

/// A provider of VMs with its catalogue, terms, hosts, and the VMs it has launched.
///
/// Use: make it with [`Provider::new`], add hosts with [`Provider::host_joined`], and report every
/// change of a VM in order of time ([`Provider::launch_vm`], [`Provider::vm_booted`],
/// [`Provider::hibernate_vm`], …, [`Provider::vm_terminated`]).
#[derive(Debug)]
pub struct Provider {
    catalogue: Catalogue,
    /// Memory that VMs of each type really fill, if that is limited.
    filled: BTreeMap<TypeName, Bytes>,
    placement: PlacementRule,
    placer: Box<dyn Placer>,
    preemption: PreemptionAction,
    /// Seed of the random choice between equally good hosts.
    seed: u64,
    prices: Arc<dyn Prices>,
    tariff: TariffName,
    billing: BillingTerms,
    default_bid: Option<Ppm>,
    fleet: HostFleet,
    /// Assignment of VMs to processors; `None` unless spot VMs run in the background of others.
    tiers: Option<HostTiers>,
    /// VMs by id. They are boxed because a long-lived VM makes the window keep a slot for each later VM.
    vms: Window<Box<ProviderVm>, VmId>,
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
    availability: BTreeMap<TypeName, SpotAvailability>,
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
    pub fn new(catalogue: Catalogue, terms: &ProviderTerms) -> Self {
        Self {
            catalogue,
            filled: BTreeMap::new(),
            placement: terms.placement.placement_rule(),
            placer: terms.placement.make_placer(),
            preemption: terms.preemption,
            seed: 0,
            prices: terms.price_source(),
            tariff: terms.tariff,
            billing: terms.billing,
            default_bid: terms.default_bid,
            fleet: HostFleet::default(),
            tiers: (terms.spot == SpotPlaces::Background).then(HostTiers::default),
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
                .filter_map(|(kind, trace)| Some((kind.clone(), trace.count_at(Time::ZERO)?)))
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
    pub fn watch_kinds(mut self, kinds: impl IntoIterator<Item = TypeName>) -> Self {
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

    /// True if each change of this type's spot price has to be reported, even without VMs.
    #[must_use]
    pub fn is_watched(&self, kind: &TypeName) -> bool {
        self.watched.contains(kind)
    }

    /// Present spot prices of the watched types.
    #[must_use]
    pub fn watched_prices(&self, now: Time) -> Vec<(TypeName, Price)> {
        let price = |kind: &TypeName| {
            Some((
                kind.clone(),
                self.prices.price_at(self.catalogue.get(kind)?, Market::Spot, now)?,
            ))
        };
        self.watched.iter().filter_map(price).collect()
    }

    /// Limits VMs by the memory that they really fill: each VM of these types fills this much, whatever its nominal
    /// size, and is placed only on a host with that much left.
    #[must_use]
    pub fn with_filling(self, filled: BTreeMap<TypeName, Bytes>) -> Self {
        Self { filled, ..self }
    }

    /// The provider with this seed for the random choice between equally good hosts.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The catalogue of instance types.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Adds an empty host.
    pub fn host_joined(&mut self, id: HostId, host: ResourceVector) {
        self.fleet.add_host(id, host);
        if let Some(tiers) = &mut self.tiers {
            tiers.add_host(id, host.vcpus);
        }
    }

    /// Removes a host; its VMs are terminated, and their ids returned.
    pub fn host_lost(&mut self, now: Time, id: HostId) -> Vec<VmId> {
        let lost = self.fleet.remove_host(id);
        for &vm in &lost {
            self.vm_terminated(now, vm, EndedBy::Provider);
        }
        if let Some(tiers) = &mut self.tiers {
            tiers.remove_host(id);
        }
        lost
    }

    /// Assignment of VMs to processors; `None` unless spot VMs run in the background of others.
    #[must_use]
    pub const fn tiers(&self) -> Option<&HostTiers> {
        self.tiers.as_ref()
    }

    /// All launched VMs that are not forgotten.
    pub fn vms(&self) -> impl Iterator<Item = (VmId, &ProviderVm)> {
        self.vms.iter().map(|(id, vm)| (id, &**vm))
    }

    /// The VMs that are not terminated.
    pub fn alive_vms(&self) -> impl ExactSizeIterator<Item = (VmId, &ProviderVm)> {
        self.alive.iter().map(|id| (*id, &*self.vms[*id]))
    }

    /// The VM of this id; `None`: no VM with this id was launched, or the VM is forgotten.
    #[must_use]
    pub fn find_vm(&self, id: VmId) -> Option<&ProviderVm> {
        self.vms.get(id).map(Box::as_ref)
    }

    /// Launches a VM for a user.
    ///
    /// # Errors
    ///
    /// See [`LaunchError`]; the provider is then unchanged.
    pub fn launch_vm(
        &mut self,
        now: Time,
        id: VmId,
        asked: &LaunchRequest<'_>,
    ) -> Result<GrantedLaunch, LaunchError> {
        let LaunchRequest { kind, market, bid, limited } = *asked;
        if self.find_vm(id).is_some() {
            return Err(LaunchError::UsedId(id));
        }
        let Some(offer) = self.catalogue.get(kind) else {
            return Err(LaunchError::UnknownType {
                kind: kind.clone(),
                known: self.catalogue.list_names(),
            });
        };
        let Some(price) = self.prices.price_at(offer, market, now) else {
            return Err(LaunchError::NotOffered { kind: kind.clone(), market });
        };
        let bid = bid.or_else(|| offer.default_bid(market, self.default_bid));
        if let Some(bid) = bid.filter(|bid| price > *bid) {
            return Err(LaunchError::Outbid { kind: kind.clone(), market, price, bid });
        }
        let (limit, like) = (offer.vm_limit(market), (kind.clone(), market));
        if limited && self.limited.get(&like).copied().unwrap_or_default() >= limit {
            return Err(LaunchError::Limit { kind: kind.clone(), market, limit });
        }
        if market == Market::Spot && !self.is_available(kind) {
            let most = self.available.get(kind).copied().unwrap_or_default();
            return Err(LaunchError::Unavailable { kind: kind.clone(), most });
        }
        let filled = self.filled.get(kind).copied().unwrap_or_default();
        let (vcpus, whole) = (offer.vcpus, ResourceVector { filled, ..offer.room() });
        let disk = self.billing.disk_price(offer.memory);
        // A VM in the background takes nothing of the foreground.
        let is_background = self.tiers.is_some() && market == Market::Spot;
        let room = self.placement.room_of(offer, filled, is_background);
        let chosen = match &self.tiers {
            Some(tiers) if is_background => tiers
                .for_background(vcpus, |host| {
                    let kept = self.parked_vcpus(host);
                    self.fleet.spare_room(host).holds(&room)
                        && tiers.free_places(host, Tier::Background) >= vcpus.saturating_add(kept)
                })
                .map(|host| (host, Vec::new())),
            _ => {
                let chance = &mut RandomStream::new(self.seed, "placement", id.get().into());
                self.placer.choose_host(
                    now,
                    &PlacementRequest { room, market },
                    &self.fleet,
                    chance,
                )
            }
        };
        let Some((host, victims)) = chosen else {
            return Err(LaunchError::NoCapacity { kind: kind.clone(), room: whole });
        };
        if let Some(tiers) = &mut self.tiers {
            let tier = if is_background { Tier::Background } else { Tier::Foreground };
            tiers.take_places(host, id, tier, vcpus);
        }
        for &victim in &victims {
            self.displace_vm(victim);
        }
        let at_once = self.fleet.place_vm(host, id, room, market);
        let meter = BillingMeter::start_at_launch(now, price, self.billing)
            .at_most(bid)
            .with_stopped_disk(disk);
        self.fleet.set_charged_since(host, id, meter.runs_since());
        let vm = ProviderVm {
            kind: kind.clone(),
            market,
            bid,
            host,
            state: ProviderVmState::Booting,
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
        Ok(GrantedLaunch { host, price, bid, ready_at, victims })
    }

    /// VMs that, since the last call, got the room they waited for, and now boot.
    pub fn take_placed(&mut self) -> Vec<VmId> {
        self.fleet.take_placed()
    }

    /// Records that a VM has booted: it is usable and charged from now on. Returns false if the VM wasn't booting.
    pub fn vm_booted(&mut self, now: Time, id: VmId) -> bool {
        self.start_running(now, id, ProviderVmState::Booting)
    }

    /// Records that the provider has given notice of this VM's end.
    pub fn given_notice(&mut self, id: VmId) {
        let Some(vm) = self.vms.get_mut(id) else { return };
        (vm.has_notice, vm.is_displaced) = (true, false);
        let host = vm.host;
        self.fleet.unpark_vm(host, id);
        self.fleet.mark_ending(host, id);
    }

    /// Records that a spot VM makes room for another: the VM hibernates or has notice of its end.
    fn displace_vm(&mut self, id: VmId) {
        if self.preemption == PreemptionAction::Hibernate && self.hibernate_vm(id) {
            if let Some(vm) = self.vms.get_mut(id) {
                vm.is_displaced = true;
            }
        } else {
            self.given_notice(id);
        }
    }

    /// True if a VM waits for room that other VMs have to leave.
    #[must_use]
    pub fn waits_for_room(&self, id: VmId) -> bool {
        self.find_vm(id).is_some_and(|vm| self.fleet.waits_for_room(vm.host, id))
    }

    /// Resumes the VMs that hibernated to make room and can have their room back; returns these
    /// VMs. On each host VMs are tried in the order in which they froze.
    pub fn give_back(&mut self, now: Time) -> Vec<VmId> {
        let (mut back, regained) = (Vec::new(), self.fleet.take_regained());
        // As after nearly every event.
        if regained.is_empty() {
            return back;
        }
        for host in regained {
            let parked: Vec<_> = self.fleet.parked_vms(host).collect();
            back.extend(
                parked.into_iter().filter(|vm| self.may_resume(now, *vm) && self.resume_vm(*vm)),
            );
        }
        back
    }

    /// Marks a VM that hibernated to make room, so that [`Provider::give_back`] tries to resume it.
    pub fn look_again(&mut self, id: VmId) {
        if let Some(host) = self.find_vm(id).map(|vm| vm.host) {
            self.fleet.look_again(host);
        }
    }

    /// True if a VM has been hibernated for long enough to resume.
    fn may_resume(&self, now: Time, id: VmId) -> bool {
        let state = self.find_vm(id).map(|vm| vm.state);
        matches!(state, Some(ProviderVmState::Hibernated { since }) if now >= since + self.catalogue.hibernation)
    }

    /// Time of the next change of a price that a VM pays or that is watched; `None`: there is none.
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
        Some((at, self.prices.price_at(self.catalogue.get(kind)?, market, at)?))
    }

    /// Applies the price changes due by `now` to spot VMs, and returns the changes that a VM pays or that are watched.
    pub fn change_prices(&mut self, now: Time) -> Vec<PriceChange> {
        let mut changed = Vec::new();
        while self.next_price_change().is_some_and(|at| at <= now) {
            let Some((_, kind)) = self.changes.pop_first() else { break };
            let next = self.prices.next_change(&kind, now);
            self.changes.extend(next.map(|at| (at, kind.clone())));
            let offer = self.catalogue.get(&kind);
            let price = offer.and_then(|offer| self.prices.price_at(offer, Market::Spot, now));
            let Some(price) = price else { continue };
            let mut outbid = Vec::new();
            for id in self.alike.get(&(kind.clone(), Market::Spot)).into_iter().flatten() {
                let Some(vm) = self.vms.get_mut(*id) else { continue };
                vm.meter.change_price(now, price);
                // One that hibernated for its price waits for another.
                let waits = vm.hibernates == Some(true)
                    && !matches!(vm.state, ProviderVmState::Booting | ProviderVmState::Running);
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

    /// Records that a running VM is commanded to hibernate; false if the VM can't hibernate.
    pub fn hibernate_vm(&mut self, id: VmId) -> bool {
        let told = self.change_state(id, |state| {
            (state == ProviderVmState::Running).then_some(ProviderVmState::Hibernating)
        });
        let is_told = told.is_some();
        self.look_at_yield(id);
        is_told
    }

    /// Records that a VM is frozen: charging stops, and its vCPUs and memory become free. Returns
    /// false if the VM wasn't commanded to hibernate.
    pub fn vm_hibernated(&mut self, now: Time, id: VmId) -> bool {
        let frozen = self.change_state(id, |state| {
            (state == ProviderVmState::Hibernating)
                .then_some(ProviderVmState::Hibernated { since: now })
        });
        let Some(vm) = frozen else { return false };
        vm.meter.pause_charging(now);
        let kind = vm.kind.clone();
        let (host, room, is_displaced) =
            (vm.host, vm.size.left_while_hibernated(), vm.is_displaced);
        self.fleet.release_room(host, id, room);
        self.fleet.set_charged_since(host, id, None);
        if is_displaced {
            self.fleet.park_vm(host, id, room);
        }
        if let Some(tiers) = &mut self.tiers {
            tiers.leave_places(id);
        }
        self.places_came_free(&kind);
        true
    }

    /// Records that a hibernated VM is commanded to resume. Returns false if the VM can't resume: it isn't hibernated,
    /// or its host's vCPUs, memory or processors are occupied or reserved for VMs that made room for others ("when
    /// there is enough available resource", Burst-HADS, I).
    pub fn resume_vm(&mut self, id: VmId) -> bool {
        let Some(vm) = self.find_vm(id) else { return false };
        let (host, room) = (vm.host, vm.size.left_while_hibernated());
        let free =
            if vm.is_displaced { self.fleet.free_room(host) } else { self.fleet.spare_room(host) };
        let is_outbid =
            vm.hibernates == Some(true) && vm.bid.is_some_and(|bid| vm.meter.price() > bid);
        let is_there = vm.market != Market::Spot || self.is_available(&vm.kind) && !is_outbid;
        if !matches!(vm.state, ProviderVmState::Hibernated { .. })
            || !free.holds(&room)
            || !is_there
        {
            return false;
        }
        // Places that VMs which made room for others will need are kept for them, as their room is.
        let kept = if vm.is_displaced { 0 } else { self.parked_vcpus(host) };
        let vcpus = self.vcpus_of(id);
        if let Some(tiers) = &mut self.tiers
            && (tiers.free_places(host, Tier::Background) < vcpus.saturating_add(kept)
                || !tiers.take_places(host, id, Tier::Background, vcpus))
        {
            return false;
        }
        self.fleet.unpark_vm(host, id);
        self.fleet.take_room(host, id, room);
        if let Some(vm) = self.vms.get_mut(id) {
            (vm.state, vm.is_displaced) = (ProviderVmState::Resuming, false);
        }
        true
    }

    /// Records that a resumed VM runs again: charging starts. Returns false if the VM wasn't commanded to resume.
    pub fn vm_resumed(&mut self, now: Time, id: VmId) -> bool {
        self.start_running(now, id, ProviderVmState::Resuming)
    }

    /// Records that a VM is gone, ended by `by`: charging stops. Returns false if the VM was gone already.
    pub fn vm_terminated(&mut self, now: Time, id: VmId, by: EndedBy) -> bool {
        let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.is_alive()) else { return false };
        vm.state = ProviderVmState::Terminated { at: now };
        vm.meter.end_charging(now, by);
        self.settled += vm.owed_at(now);
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
    pub fn set_surcharge(&mut self, id: VmId, cost: Money) {
        if let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.is_alive()) {
            vm.surcharge = cost;
        }
    }

    /// Forgets a VM that is gone; returns the money owed for the VM, which stays in the provider's total.
    pub fn forget_vm(&mut self, id: VmId) -> Money {
        match self.find_vm(id) {
            Some(vm) if !vm.is_alive() => {
                let owed = vm.owed_at(Time::from_micros(u64::MAX));
                self.vms.remove(id);
                owed
            }
            _ => Money::ZERO,
        }
    }

    /// Money owed for all VMs up to `now`.
    #[must_use]
    pub fn owed_at(&self, now: Time) -> Money {
        self.settled + self.alive_vms().map(|(_, vm)| vm.owed_at(now)).sum()
    }

    /// Changes a VM from state `from` to running, and starts charging if necessary; returns false
    /// if the VM is in another state.
    fn start_running(&mut self, now: Time, id: VmId, from: ProviderVmState) -> bool {
        let running =
            self.change_state(id, |state| (state == from).then_some(ProviderVmState::Running));
        let Some(vm) = running else { return false };
        vm.usable.get_or_insert(now);
        vm.meter.start_charging(now);
        let (host, since) = (vm.host, vm.meter.runs_since());
        self.fleet.set_charged_since(host, id, since);
        self.look_at_yield(id);
        true
    }

    /// Updates the part of a spot VM's room that other VMs can get in its present state.
    fn look_at_yield(&mut self, id: VmId) {
        let Some(vm) = self.find_vm(id).filter(|vm| vm.market == Market::Spot) else { return };
        if self.preemption == PreemptionAction::Hibernate && !vm.has_notice {
            let yields = match vm.state {
                ProviderVmState::Booting => YieldedRoom::All,
                ProviderVmState::Running => YieldedRoom::Hibernating,
                _ => YieldedRoom::Nothing,
            };
            let host = vm.host;
            self.fleet.set_yielded(host, id, yields);
        }
    }

    /// vCPUs of the VMs on a host that made room for others and wait to resume.
    fn parked_vcpus(&self, host: HostId) -> u32 {
        self.fleet.parked_vms(host).map(|vm| self.vcpus_of(vm)).sum()
    }

    /// Number of vCPUs of a VM's type, even if these don't count as room on the host.
    fn vcpus_of(&self, id: VmId) -> u32 {
        let kind = self.find_vm(id).and_then(|vm| self.catalogue.get(&vm.kind));
        kind.map_or(0, |kind| kind.vcpus)
    }

    fn change_state(
        &mut self,
        id: VmId,
        next: impl FnOnce(ProviderVmState) -> Option<ProviderVmState>,
    ) -> Option<&mut ProviderVm> {
        let vm = self.vms.get_mut(id)?;
        vm.state = next(vm.state)?;
        Some(&mut **vm)
    }
}

#[cfg(test)]
mod tests;
