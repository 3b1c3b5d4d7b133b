//! Checks of charges for surplus credits; for a VM whose use the log declares, the charge is computed.

use dormouse_model::{Decision, Step};
use dormouse_units::{Credits, Money, Span, VmId};

use super::{ALIVE, Checker};
use crate::check::declared_use::DeclaredUse;

impl Checker<'_> {
    /// Takes in the use of vCPUs that decisions of this step declare for burstable VMs, once the effects of the step are known.
    pub(super) fn declare_uses(&mut self, step: &Step) {
        let now = self.now;
        for (n, decision) in step.decisions.iter().enumerate() {
            let Decision::SetVcpuUse { vm, used, surplus } = decision else { continue };
            if step.effects.iter().any(|effect| effect.refuses_decision(n)) {
                continue;
            }
            self.check_vm(*vm, &ALIVE, "has its use declared", |vm| {
                vm.pass_use(now);
                let Some(declared) = &mut vm.declared else {
                    return Some(format!("{} has no credits", vm.kind.name));
                };
                if surplus.is_none() {
                    declared.charge_all();
                }
                (declared.used, declared.price) = (Some(*used), *surplus);
                declared.last_price = surplus.or(declared.last_price);
                None
            });
        }
    }

    /// Checks a charge for surplus credits: `cost` must be the price of `credits`, must not
    /// decrease, and the credits can't exceed the time of the VM's vCPUs since its launch; where the
    /// VM's use is declared, the credits must be those that it leads to.
    pub(super) fn check_surcharge(&mut self, id: VmId, credits: Credits, cost: Money) {
        let now = self.now;
        self.check_vm(id, &ALIVE, "is charged for surplus credits", |vm| {
            vm.pass_use(now);
            let declared = vm.declared.as_mut().filter(|declared| declared.used.is_some());
            let of_type = vm.kind.burstable.and_then(|burstable| burstable.surplus);
            let known = declared.as_ref().map_or(of_type, |declared| declared.last_price);
            let Some(price) = known else {
                return Some(format!("{} is not in unlimited mode", vm.kind.name));
            };
            let right = price.for_span(Span::from_micros(credits.as_vcpu_micros()));
            let most = now.since(vm.launched).times(u64::from(vm.kind.vcpus)).as_micros();
            let is_less = cost < vm.surcharge;
            vm.surcharge = cost;
            let owed = declared.map(DeclaredUse::charge_all).filter(|owed| *owed != credits);
            if cost != right {
                Some(format!("{credits} of surplus cost {right}, not {cost}"))
            } else if credits.as_vcpu_micros() > most {
                Some(format!("it spent {credits} beyond what it had earned: more than it can have"))
            } else if let Some(owed) = owed {
                Some(format!("it is charged for {credits} of surplus, and its use leads to {owed}"))
            } else {
                is_less.then(|| "less is charged in all than before".to_owned())
            }
        });
    }
}
