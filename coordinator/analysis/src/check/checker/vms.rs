//! The VMs of a run as the checker tracks them: checks of their launches, stages, credits and bills.

use std::collections::BTreeMap;

use dormouse_cloud::{BillingMeter, Market, SpotPlaces};
use dormouse_model::VmEnd;
use dormouse_units::{Credits, HostId, Money, Price, Span, Time, TypeName, VmId};

use super::{ALIVE, CheckedVm, Checker, VmStage};
use crate::check::declared_use::DeclaredUse;

impl Checker<'_> {
    /// Runs `change` on a VM that must be in one of the stages `fit`; `what` names the event in the
    /// violation.
    pub(super) fn check_vm(
        &mut self,
        id: VmId,
        fit: &[VmStage],
        what: &str,
        change: impl FnOnce(&mut CheckedVm) -> Option<String>,
    ) {
        let Some(vm) = self.vms.get_mut(&id) else {
            return self.report_violation(format!("{id} {what} but was never launched"));
        };
        if !fit.contains(&vm.life) {
            let life = vm.life;
            return self.report_violation(format!("{id} {what} while it is {life}"));
        }
        if let Some(wrong) = change(vm) {
            self.report_violation(format!("{id}: {wrong}"));
        }
    }

    pub(super) fn check_launch(
        &mut self,
        (id, host): (VmId, HostId),
        kind: &TypeName,
        market: Market,
        price: Price,
        bid: Option<Price>,
    ) {
        let Some(kind) = self.setup.catalogue.get(kind).cloned() else {
            return self
                .report_violation(format!("{id} is of a type that the catalogue doesn't have"));
        };
        let used = self.vms.contains_key(&id);
        self.require(!used, || format!("{id} is launched twice"));
        let right = self.prices.price_at(&kind, market, self.now) == Some(price);
        self.require(right, || format!("{id} is charged {price}, which is not its price"));
        self.require(bid.is_none_or(|bid| price <= bid), || {
            format!("{id} costs more than its bid")
        });
        let alike = self
            .vms
            .values()
            .filter(|v| v.life != VmStage::Ended && v.market == market && v.kind.name == kind.name);
        let (count, limit) = (alike.count(), kind.vm_limit(market) as usize);
        self.require(count < limit, || format!("{id} is more than the limit of {limit}"));
        let background = self.setup.terms.spot == SpotPlaces::Background;
        let filled = self.filled.get(&kind.name).copied().unwrap_or_default();
        let room = self.placement.room_of(&kind, filled, background && market == Market::Spot);
        self.taken_of.insert(host);
        let disk = self.setup.terms.billing.disk_price(kind.memory);
        let declared = DeclaredUse::launched(self.now, &kind);
        let followed = CheckedVm {
            kind,
            market,
            bid,
            host,
            room,
            waits: false,
            notice: None,
            is_displaced: false,
            resumes: false,
            places: None,
            life: VmStage::Booting,
            launched: self.now,
            meter: BillingMeter::start_at_launch(self.now, price, self.setup.terms.billing)
                .at_most(bid)
                .with_stopped_disk(disk),
            frozen: Span::ZERO,
            frozen_since: None,
            tasks: BTreeMap::new(),
            credits: None,
            surcharge: Money::ZERO,
            declared,
        };
        self.vms.insert(id, followed);
    }

    pub(super) fn price_changed(&mut self, kind: &TypeName, price: Price) {
        let known = self.setup.catalogue.get(kind);
        let right = known.and_then(|kind| self.prices.price_at(kind, Market::Spot, self.now));
        self.require(right == Some(price), || format!("{price} is not the price of {kind}"));
        let now = self.now;
        for vm in self.vms.values_mut() {
            if vm.market == Market::Spot && vm.kind.name == *kind && vm.life != VmStage::Ended {
                vm.meter.change_price(now, price);
            }
        }
    }

    pub(super) fn took_effect(&mut self, vm: VmId, asked: Time, freeze: bool) {
        let now = self.now;
        self.require(asked <= now, || format!("{vm} changed before that was asked for at {asked}"));
        let fit = if freeze { VmStage::Freezing } else { VmStage::Frozen };
        self.check_vm(vm, &[fit], "hibernates or resumes", |vm| {
            if freeze {
                vm.freeze(now);
            } else {
                vm.thaw(now);
            }
            None
        });
    }

    pub(super) fn check_vm_end(&mut self, id: VmId, why: VmEnd, cost: Money) {
        let (now, tariff) = (self.now, self.setup.terms.tariff);
        let mut left = Vec::new();
        if why == VmEnd::Preempted {
            self.is_taken(id);
        }
        self.check_vm(id, &ALIVE, "ends", |vm| {
            vm.meter.end_charging(now, why.ended_by());
            vm.life = VmStage::Ended;
            vm.places = None;
            left = std::mem::take(&mut vm.tasks).into_keys().collect();
            let owed = vm.meter.settled_cost(tariff) + vm.surcharge;
            (owed != cost).then(|| format!("it cost {cost}, its intervals {owed}"))
        });
        for task in left {
            self.remove_task(task, id);
        }
    }

    pub(super) fn check_credits(&mut self, vm: VmId, said: (Credits, Option<Time>)) {
        let (now, late) = (self.now, (self.lateness, self.bounds.held_up(self.now, self.lateness)));
        self.check_vm(vm, &ALIVE, "reports credits", |vm| vm.credit_error(now, said, late));
    }

    pub(super) fn frozen_for(&self, vm: VmId) -> Span {
        self.vms.get(&vm).map_or(Span::ZERO, |vm| vm.frozen_until(self.now))
    }

    /// In virtual time, requires that the VM is not hibernated. A real VM's report may date from
    /// just before its hibernation, so live runs are not checked.
    pub(super) fn require_awake(&mut self, vm: VmId, what: &str) {
        if self.is_exact() {
            self.check_vm(vm, &[VmStage::Running, VmStage::Freezing], what, |_| None);
        }
    }
}
