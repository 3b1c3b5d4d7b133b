//! The life of every VM: launched, booting, running, hibernated, terminated.

use std::collections::BTreeMap;

use dormouse_units::{Bytes, HostId, Money, Time, TypeName, VmId};

use crate::{Action, Catalogue, Charge, Host, Interruption, Market, Meter, Placement, Target};

/// Where a VM is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmState {
    /// Requested, not usable yet, not charged.
    Booting,
    /// Usable and charged.
    Running,
    /// Told to hibernate; charged until it has.
    Hibernating,
    /// Frozen, its memory kept, not charged.
    Hibernated {
        /// When it took effect.
        since: Time,
    },
    /// Told to resume; charged from when it has.
    Resuming,
    /// Gone for good.
    Terminated {
        /// The emulated time at which it was gone.
        at: Time,
    },
}

/// One VM as its provider sees it.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Its instance type.
    pub kind: TypeName,
    /// How it was bought.
    pub market: Market,
    /// The host that carries it.
    pub host: HostId,
    /// Where it is in its life.
    pub state: VmState,
    /// When it was requested.
    pub launched: Time,
    size: Host,
    /// What of its host it holds now: a hibernated VM keeps its memory there, not its vCPUs.
    holds: Host,
    meter: Meter,
}

impl Vm {
    /// Not terminated.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, VmState::Terminated { .. })
    }

    /// What is owed for it up to `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.meter.owed(now)
    }

    /// The closed charged intervals.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        self.meter.charges()
    }
}

/// What the user learns of a granted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The host that will carry it.
    pub host: HostId,
    /// When it has booted.
    pub ready_at: Time,
}

/// Why a request for a VM was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No such type.
    #[error("there is no instance type '{kind}'; the catalogue has {known}")]
    UnknownType {
        /// The name asked for.
        kind: TypeName,
        /// The names there are.
        known: String,
    },
    /// The type is not sold in that market.
    #[error("{kind} is not offered in the {market} market")]
    NotOffered {
        /// The type.
        kind: TypeName,
        /// The market.
        market: Market,
    },
    /// As many of the type run as the provider allows.
    #[error("the limit of {limit} {market} {kind} at a time is reached")]
    Limit {
        /// The type.
        kind: TypeName,
        /// The market.
        market: Market,
        /// The limit.
        limit: u32,
    },
    /// No host has room.
    #[error("no host has {vcpus} vCPUs and {memory} free for a {kind}")]
    NoCapacity {
        /// The type.
        kind: TypeName,
        /// The vCPUs it needs.
        vcpus: u32,
        /// The memory it needs.
        memory: Bytes,
    },
    /// The id was used before in this run.
    #[error("{0} has been used before")]
    UsedId(VmId),
}

/// The provider.
#[derive(Debug)]
pub struct Provider {
    catalogue: Catalogue,
    hosts: Placement,
    vms: BTreeMap<VmId, Vm>,
}

impl Provider {
    /// A provider of these types, without hosts yet.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        Self { catalogue, hosts: Placement::default(), vms: BTreeMap::new() }
    }

    /// The types of VM that are sold.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// A host joins, empty.
    pub fn host_joined(&mut self, id: HostId, host: Host) {
        self.hosts.join(id, host);
    }

    /// A host is lost; its VMs are terminated, and returned.
    pub fn host_lost(&mut self, now: Time, id: HostId) -> Vec<VmId> {
        let lost: Vec<_> = self
            .vms
            .iter()
            .filter(|(_, vm)| vm.host == id && vm.is_alive())
            .map(|(&v, _)| v)
            .collect();
        for &vm in &lost {
            self.terminated(now, vm);
        }
        self.hosts.leave(id);
        lost
    }

    /// All VMs ever launched.
    pub fn vms(&self) -> impl Iterator<Item = (VmId, &Vm)> {
        self.vms.iter().map(|(&id, vm)| (id, vm))
    }

    /// One VM.
    #[must_use]
    pub fn vm(&self, id: VmId) -> Option<&Vm> {
        self.vms.get(&id)
    }

    /// A user asks for a VM.
    ///
    /// # Errors
    ///
    /// See [`LaunchError`]; nothing has changed then.
    pub fn launch(
        &mut self,
        now: Time,
        id: VmId,
        kind: &TypeName,
        market: Market,
    ) -> Result<Launched, LaunchError> {
        if self.vms.contains_key(&id) {
            return Err(LaunchError::UsedId(id));
        }
        let Some(offer) = self.catalogue.get(kind) else {
            return Err(LaunchError::UnknownType {
                kind: kind.clone(),
                known: self.catalogue.names(),
            });
        };
        let Some(price) = offer.price(market) else {
            return Err(LaunchError::NotOffered { kind: kind.clone(), market });
        };
        let limit = offer.limit(market);
        let alive = |vm: &&Vm| vm.is_alive() && vm.kind == *kind && vm.market == market;
        if self.vms.values().filter(alive).count() >= limit as usize {
            return Err(LaunchError::Limit { kind: kind.clone(), market, limit });
        }
        let size = Host { vcpus: offer.vcpus, memory: offer.memory };
        let Some(host) = self.hosts.place(size) else {
            let Host { vcpus, memory } = size;
            return Err(LaunchError::NoCapacity { kind: kind.clone(), vcpus, memory });
        };
        let vm = Vm {
            kind: kind.clone(),
            market,
            host,
            state: VmState::Booting,
            launched: now,
            size,
            holds: size,
            meter: Meter::new(price),
        };
        self.vms.insert(id, vm);
        Ok(Launched { host, ready_at: now + self.catalogue.boot })
    }

    /// A VM has booted: usable and charged from now. False if it wasn't booting.
    pub fn booted(&mut self, now: Time, id: VmId) -> bool {
        self.transit(id, |state| (state == VmState::Booting).then_some(VmState::Running))
            .map(|vm| vm.meter.start(now))
            .is_some()
    }

    /// The VMs that an interruption hits now: running spot VMs to hibernate or
    /// preempt, VMs hibernated for long enough to resume.
    #[must_use]
    pub fn hit_by(&self, now: Time, interruption: &Interruption) -> Vec<VmId> {
        let hit = |id: VmId, vm: &Vm| {
            let targeted = match &interruption.target {
                Target::Type(kind) => vm.kind == *kind,
                Target::Vm(target) => id == *target,
            };
            let in_state = match (interruption.action, vm.state) {
                (Action::Hibernate, VmState::Running) => true,
                (Action::Preempt, state) => {
                    matches!(state, VmState::Running | VmState::Hibernated { .. })
                }
                (Action::Resume, VmState::Hibernated { since }) => {
                    now >= since + self.catalogue.hibernation
                }
                _ => false,
            };
            targeted && in_state && vm.market == Market::Spot
        };
        self.vms.iter().filter(|(id, vm)| hit(**id, vm)).map(|(&id, _)| id).collect()
    }

    /// A running VM is told to hibernate. False if it can't be.
    pub fn hibernate(&mut self, id: VmId) -> bool {
        self.transit(id, |state| (state == VmState::Running).then_some(VmState::Hibernating))
            .is_some()
    }

    /// The VM is frozen; charging ends and its vCPUs are free for others. False if it wasn't
    /// told to.
    pub fn hibernated(&mut self, now: Time, id: VmId) -> bool {
        let frozen = self.transit(id, |state| {
            (state == VmState::Hibernating).then_some(VmState::Hibernated { since: now })
        });
        let Some(vm) = frozen else { return false };
        vm.meter.stop(now);
        let (host, vcpus) = (vm.host, std::mem::take(&mut vm.holds.vcpus));
        self.hosts.release(host, Host { vcpus, memory: Bytes::ZERO });
        true
    }

    /// A hibernated VM is told to resume. False if it can't be: it isn't hibernated, or
    /// others have its host's vCPUs ("when there is enough available resource", Burst-HADS, I).
    pub fn resume(&mut self, id: VmId) -> bool {
        let Some(vm) = self.vms.get_mut(&id) else { return false };
        let back = Host { vcpus: vm.size.vcpus, memory: Bytes::ZERO };
        if !matches!(vm.state, VmState::Hibernated { .. }) || !self.hosts.take(vm.host, back) {
            return false;
        }
        vm.holds = vm.size;
        vm.state = VmState::Resuming;
        true
    }

    /// The VM runs again; charging begins. False if it wasn't told to.
    pub fn resumed(&mut self, now: Time, id: VmId) -> bool {
        self.transit(id, |state| (state == VmState::Resuming).then_some(VmState::Running))
            .map(|vm| vm.meter.start(now))
            .is_some()
    }

    /// The VM is gone for good; charging ends. False if it was gone.
    pub fn terminated(&mut self, now: Time, id: VmId) -> bool {
        let Some(vm) = self.vms.get_mut(&id).filter(|vm| vm.is_alive()) else { return false };
        vm.state = VmState::Terminated { at: now };
        vm.meter.stop(now);
        self.hosts.release(vm.host, vm.holds);
        true
    }

    /// What is owed for all VMs up to `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.vms.values().map(|vm| vm.owed(now)).sum()
    }

    fn transit(
        &mut self,
        id: VmId,
        next: impl FnOnce(VmState) -> Option<VmState>,
    ) -> Option<&mut Vm> {
        let vm = self.vms.get_mut(&id)?;
        vm.state = next(vm.state)?;
        Some(vm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InstanceType, Limits};
    use dormouse_units::{Price, Span};

    fn provider() -> Provider {
        let kind = InstanceType {
            name: "c3.large".into(),
            vcpus: 2,
            memory: Bytes::new(1 << 30),
            mflops: 22_090,
            on_demand: None,
            spot: Some(Price::from_nanos_per_hour(29_700_000)),
            limits: Limits { spot: 2, on_demand: 0 },
            burstable: None,
        };
        let mut provider = Provider::new(Catalogue {
            types: [(kind.name.clone(), kind)].into(),
            boot: Span::from_secs(180),
            hibernation: Span::from_secs(180),
        });
        provider.host_joined(HostId::new(0), Host { vcpus: 8, memory: Bytes::new(1 << 34) });
        provider
    }

    #[test]
    fn only_time_between_boot_and_end_and_outside_hibernation_is_charged() {
        let (mut p, vm, s) = (provider(), VmId::new(1), Time::from_secs);
        let launched = p.launch(s(0), vm, &"c3.large".into(), Market::Spot).expect("granted");
        assert_eq!(launched.ready_at, s(180));
        assert!(p.booted(s(180), vm) && !p.booted(s(181), vm));
        assert!(p.hibernate(vm) && !p.hibernate(vm));
        assert!(p.hibernated(s(1_180), vm));
        let back = |at| Interruption { at, target: Target::Vm(vm), action: Action::Resume };
        assert_eq!(p.hit_by(s(1_300), &back(s(1_300))), []);
        assert_eq!(p.hit_by(s(1_400), &back(s(1_400))), [vm]);
        assert!(p.resume(vm) && p.resumed(s(2_000), vm));
        assert!(p.terminated(s(2_800), vm) && !p.terminated(s(2_900), vm));
        let charged: Span = p.vm(vm).expect("it").charges().iter().map(Charge::duration).sum();
        assert_eq!(charged, Span::from_secs(1_800));
        assert_eq!(p.owed(s(9_999)), Money::from_nanos(14_850_000));
    }

    #[test]
    fn a_hibernated_vm_leaves_its_vcpus_to_others_and_resumes_once_they_are_free() {
        let (mut p, s) = (provider(), Time::from_secs);
        p.host_joined(HostId::new(0), Host { vcpus: 2, memory: Bytes::new(1 << 34) });
        let (first, second, kind) = (VmId::new(1), VmId::new(2), TypeName::from("c3.large"));
        assert!(p.launch(s(0), first, &kind, Market::Spot).is_ok() && p.booted(s(9), first));
        assert!(p.launch(s(10), second, &kind, Market::Spot).is_err());
        assert!(p.hibernate(first) && p.hibernated(s(20), first));
        assert!(p.launch(s(30), second, &kind, Market::Spot).is_ok());
        assert!(!p.resume(first), "its vCPUs are taken");
        assert!(p.terminated(s(40), second) && p.resume(first));
        assert!(p.launch(s(50), VmId::new(3), &kind, Market::Spot).is_err());
        assert!(p.terminated(s(60), first));
        assert!(p.launch(s(70), VmId::new(3), &kind, Market::Spot).is_ok());
    }

    #[test]
    fn requests_that_cannot_be_are_refused_and_change_nothing() {
        let (mut p, kind, now) = (provider(), TypeName::from("c3.large"), Time::ZERO);
        let ask = |p: &mut Provider, id, kind: &TypeName, market| {
            p.launch(now, VmId::new(id), kind, market)
        };
        assert!(matches!(
            ask(&mut p, 1, &"c9".into(), Market::Spot),
            Err(LaunchError::UnknownType { .. })
        ));
        assert!(matches!(
            ask(&mut p, 1, &kind, Market::OnDemand),
            Err(LaunchError::NotOffered { .. })
        ));
        assert!(ask(&mut p, 1, &kind, Market::Spot).is_ok());
        assert!(matches!(ask(&mut p, 1, &kind, Market::Spot), Err(LaunchError::UsedId(_))));
        assert!(ask(&mut p, 2, &kind, Market::Spot).is_ok());
        assert!(matches!(
            ask(&mut p, 3, &kind, Market::Spot),
            Err(LaunchError::Limit { limit: 2, .. })
        ));
        assert_eq!(p.host_lost(now, HostId::new(0)), [VmId::new(1), VmId::new(2)]);
        assert!(matches!(ask(&mut p, 3, &kind, Market::Spot), Err(LaunchError::NoCapacity { .. })));
    }
}
