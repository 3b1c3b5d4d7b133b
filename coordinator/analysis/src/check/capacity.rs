//! Checks that spot VMs of scarce types are launched and reclaimed as the provider's availability
//! trace demands.

use std::collections::BTreeMap;

use dormouse_cloud::{InterruptionAction, Market};
use dormouse_model::{Effect, Setup, Step};
use dormouse_units::{Time, TypeName, VmId};

use super::RuleViolation;

/// Stage of a spot VM, as far as it decides whether the VM counts against the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpotStage {
    /// The VM boots or runs, or has been commanded to resume.
    Up,
    /// The VM has been commanded to hibernate: it still counts against the capacity, and can't be reclaimed.
    Freezing,
    /// The VM is hibernated and does not count against the capacity.
    Frozen,
}

/// A living spot VM of a type with limited capacity.
#[derive(Clone, Debug)]
struct ScarceVm {
    kind: TypeName,
    life: SpotStage,
    has_notice: bool,
}

/// Follows the spot VMs of scarce types over a whole run, for all tenants together. It reports a
/// launch beyond the available number, a reclaim while enough are available, and an availability
/// that differs from the provider's trace.
#[derive(Clone, Debug)]
pub struct CapacityChecker<'a> {
    setup: &'a Setup,
    /// Number of spot VMs of each scarce type that the provider has now.
    available: BTreeMap<TypeName, u32>,
    vms: BTreeMap<VmId, ScarceVm>,
    violations: Vec<RuleViolation>,
}

impl<'a> CapacityChecker<'a> {
    /// A checker for a run of this whole setup, before its first step.
    #[must_use]
    pub fn new(setup: &'a Setup) -> Self {
        let traces = setup.terms.availability.iter();
        let first =
            traces.filter_map(|(kind, trace)| Some((kind.clone(), trace.count_at(Time::ZERO)?)));
        Self { setup, available: first.collect(), vms: BTreeMap::new(), violations: Vec::new() }
    }

    /// All violations, in the order of the steps.
    #[must_use]
    pub fn finish(self) -> Vec<RuleViolation> {
        self.violations
    }

    /// Checks the next step of the whole run.
    pub fn see(&mut self, step: &Step) {
        // Most providers have enough of everything.
        if self.available.is_empty() {
            return;
        }
        for effect in &step.effects {
            if let Some(what) = self.check_effect(step.at, effect) {
                self.violations.push(RuleViolation { seq: step.seq, at: step.at, what });
            }
        }
    }

    /// Applies an effect and returns what is wrong with it, if anything.
    fn check_effect(&mut self, now: Time, effect: &Effect) -> Option<String> {
        match effect {
            Effect::AvailabilityChanged { kind, vms } => {
                let trace = self.setup.terms.availability.get(kind);
                let right = trace.and_then(|trace| trace.count_at(now)) == Some(*vms);
                self.available.insert(kind.clone(), *vms);
                return (!right).then(|| {
                    format!("{vms} spot {kind} can be had, which its record does not say")
                });
            }
            Effect::VmLaunched { vm, kind, market: Market::Spot, .. } => {
                let most = *self.available.get(kind)?;
                let held = self.count_vms(kind, |held| held.life != SpotStage::Frozen);
                let held_now =
                    ScarceVm { kind: kind.clone(), life: SpotStage::Up, has_notice: false };
                self.vms.insert(*vm, held_now);
                return (held >= most as usize).then(|| {
                    format!("{vm} is launched, though no more than {most} spot {kind} could be had")
                });
            }
            Effect::Reclaimed { vm } => {
                let kind = self.vms.get(vm).map(|held| held.kind.clone());
                let is_excess = kind.is_some_and(|kind| {
                    let most = self.available.get(&kind).map_or(usize::MAX, |most| *most as usize);
                    self.count_vms(&kind, |held| held.life == SpotStage::Up && !held.has_notice)
                        > most
                });
                self.change_vm(*vm, |held| held.has_notice = true);
                return (!is_excess)
                    .then(|| format!("{vm} is taken back though as many can be had as there are"));
            }
            Effect::Interrupted { action, vms, .. } => {
                vms.iter().for_each(|vm| self.acted_on(*vm, *action));
            }
            Effect::Displaced { vm, action, .. } => self.acted_on(*vm, *action),
            Effect::GivenBack { vm } => self.acted_on(*vm, InterruptionAction::Resume),
            Effect::Outbid { vm } => self.acted_on(*vm, InterruptionAction::Preempt),
            Effect::VmHibernated { vm, .. } => {
                self.change_vm(*vm, |held| held.life = SpotStage::Frozen);
            }
            Effect::VmEnded { vm, .. } => drop(self.vms.remove(vm)),
            _ => {}
        }
        None
    }

    fn acted_on(&mut self, vm: VmId, action: InterruptionAction) {
        self.change_vm(vm, |held| match action {
            InterruptionAction::Hibernate => held.life = SpotStage::Freezing,
            InterruptionAction::Resume => held.life = SpotStage::Up,
            InterruptionAction::Preempt => held.has_notice = true,
            InterruptionAction::Rebalance => {}
        });
    }

    fn change_vm(&mut self, vm: VmId, change: impl FnOnce(&mut ScarceVm)) {
        if let Some(held) = self.vms.get_mut(&vm) {
            change(held);
        }
    }

    fn count_vms(&self, kind: &TypeName, is: impl Fn(&ScarceVm) -> bool) -> usize {
        self.vms.values().filter(|held| held.kind == *kind && is(held)).count()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::SpotAvailability;
    use dormouse_model::{Event, UsageInformation};
    use dormouse_units::{HostId, Price};

    use super::*;

    /// Rules that these effects break if two spot VMs are available from 0 s on, and one from 100 s on.
    fn wrong(effects: &[(u64, Effect)]) -> Vec<String> {
        let mut setup = Setup::of_jobs(1, UsageInformation::Exact, 1);
        let numbers = vec![(Time::ZERO, 2), (Time::from_secs(100), 1)];
        setup.terms.availability.insert("x".into(), SpotAvailability::new(numbers));
        let mut checker = CapacityChecker::new(&setup);
        for (second, effect) in effects {
            let mut step = Step::blank();
            step.begin_step(0, Time::from_secs(*second), Event::Tick);
            step.effects.push(effect.clone());
            checker.see(&step);
        }
        checker.finish().into_iter().map(|violation| violation.what).collect()
    }

    fn launched(vm: u32) -> Effect {
        let (vm, kind, market) = (VmId::new(vm), "x".into(), Market::Spot);
        let (price, host) = (Price::default(), HostId::new(0));
        Effect::VmLaunched { vm, kind, market, price, bid: None, vcpus: 1, host }
    }

    #[test]
    fn what_the_record_does_not_allow_is_found() {
        let fewer = (100, Effect::AvailabilityChanged { kind: "x".into(), vms: 1 });
        let reclaimed = |vm| (100, Effect::Reclaimed { vm: VmId::new(vm) });
        let two = [(0, launched(0)), (0, launched(1))];
        let right = [&two[..], &[fewer.clone(), reclaimed(1)]].concat();
        assert_eq!(wrong(&right), Vec::<String>::new());
        for (effects, part) in [
            ([&two[..], &[(0, launched(2))]].concat(), "no more than 2 spot x could be had"),
            ([&two[..], &[reclaimed(1)]].concat(), "as many can be had as there are"),
            ([&right[..], &[reclaimed(0)]].concat(), "as many can be had as there are"),
            (
                vec![(50, Effect::AvailabilityChanged { kind: "x".into(), vms: 1 })],
                "which its record does not say",
            ),
        ] {
            let found = wrong(&effects);
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
        }
    }
}
