//! Checks that spot VMs are hibernated, resumed and ended only as the terms allow.

use dormouse_cloud::{InterruptionAction, InterruptionTarget, Market};
use dormouse_units::{Time, VmId};

use super::{ALIVE, CheckedVm, Checker, VmStage};

impl Checker<'_> {
    /// Checks an interruption by the provider: `vms` are the VMs that it affected, `left` the VMs
    /// that it left unchanged.
    pub(super) fn check_interruption(
        &mut self,
        asked: Time,
        action: InterruptionAction,
        target: &InterruptionTarget,
        (vms, left): (&[VmId], &[VmId]),
    ) {
        let now = self.now;
        // Nothing in the log tells when another tenant's VM gets this one's room.
        let may_make_room = matches!(target, InterruptionTarget::Vm(_)) && self.hibernates();
        self.require(asked <= now, || {
            format!("an interruption before it was asked for at {asked}")
        });
        let fit: &[VmStage] = match action {
            InterruptionAction::Hibernate | InterruptionAction::Rebalance => &[VmStage::Running],
            InterruptionAction::Resume => &[VmStage::Frozen],
            // A VM that makes room for another tenant's may have been told to hibernate before.
            InterruptionAction::Preempt => &ALIVE,
        };
        // A VM that resumes is frozen until it has.
        let unfit: &[VmStage] = match action {
            InterruptionAction::Hibernate => &[VmStage::Booting, VmStage::Frozen],
            InterruptionAction::Resume | InterruptionAction::Preempt => {
                &[VmStage::Freezing, VmStage::Frozen]
            }
            InterruptionAction::Rebalance => &[],
        };
        for vm in left {
            self.check_vm(*vm, unfit, "is left alone by an interruption", |vm| {
                (vm.market != Market::Spot).then(|| "it is not a spot VM".to_owned())
            });
        }
        for vm in vms {
            self.check_vm(*vm, fit, "is interrupted", |vm| {
                match action {
                    InterruptionAction::Hibernate => {
                        (vm.life, vm.is_displaced) = (VmStage::Freezing, may_make_room);
                    }
                    InterruptionAction::Resume => vm.resumes = true,
                    InterruptionAction::Preempt | InterruptionAction::Rebalance => {}
                }
                (vm.market != Market::Spot).then(|| "it is not a spot VM".to_owned())
            });
            match action {
                InterruptionAction::Preempt => self.has_notice(*vm),
                InterruptionAction::Resume => self.takes_room(*vm),
                InterruptionAction::Hibernate | InterruptionAction::Rebalance => {}
            }
        }
    }

    /// Notes that a spot VM got notice of its end; `and` describes what is wrong with the reason for the notice, if anything.
    pub(super) fn check_preemption(
        &mut self,
        vm: VmId,
        and: impl FnOnce(&CheckedVm) -> Option<String>,
    ) {
        self.check_vm(vm, &ALIVE, "is given notice", |vm| match vm.market {
            Market::Spot => and(vm),
            Market::OnDemand => Some("it is not a spot VM".to_owned()),
        });
        self.has_notice(vm);
    }

    /// Notes that a VM is given notice of its end, and requires that the VM had no notice before.
    pub(super) fn has_notice(&mut self, id: VmId) {
        let now = self.now;
        self.check_vm(id, &ALIVE, "is given notice", |vm| {
            let before = vm.notice.replace((now, vm.life != VmStage::Booting));
            before.map(|(at, _)| format!("it has had its notice since {at}"))
        });
    }

    /// Requires that a VM which its provider ends has had its whole notice.
    pub(super) fn is_taken(&mut self, id: VmId) {
        let (now, notice) = (self.now, self.setup.preemption_notice);
        self.check_vm(id, &ALIVE, "is taken by its provider", |vm| match vm.notice {
            None => Some("it is taken without notice".to_owned()),
            Some((at, true)) if now < at + notice => {
                Some(format!("it is taken {} after its notice, not {notice}", now.since(at)))
            }
            _ => None,
        });
    }
}
