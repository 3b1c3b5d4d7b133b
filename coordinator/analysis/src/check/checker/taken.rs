//! Whether spot VMs are hibernated, resumed and ended as they may be.

use dormouse_cloud::{Action, Market, Target};
use dormouse_units::{Time, VmId};

use super::{ALIVE, Checker, Followed, Life};

impl Checker<'_> {
    /// The provider did this to some VMs and left others as they were.
    pub(super) fn interrupted(
        &mut self,
        asked: Time,
        action: Action,
        target: &Target,
        (vms, left): (&[VmId], &[VmId]),
    ) {
        let now = self.now;
        // Of another tenant's VM that has its room nothing is said.
        let may_make_room = matches!(target, Target::Vm(_)) && self.hibernates();
        self.require(asked <= now, || {
            format!("an interruption before it was asked for at {asked}")
        });
        let fit: &[Life] = match action {
            Action::Hibernate | Action::Rebalance => &[Life::Running],
            Action::Resume => &[Life::Frozen],
            // One that makes room for another's VM may have been told to hibernate before.
            Action::Preempt => &ALIVE,
        };
        // A VM that resumes is frozen until it has.
        let unfit: &[Life] = match action {
            Action::Hibernate => &[Life::Booting, Life::Frozen],
            Action::Resume | Action::Preempt => &[Life::Freezing, Life::Frozen],
            Action::Rebalance => &[],
        };
        for vm in left {
            self.on(*vm, unfit, "is left alone by an interruption", |vm| {
                (vm.market != Market::Spot).then(|| "it is not a spot VM".to_owned())
            });
        }
        for vm in vms {
            self.on(*vm, fit, "is interrupted", |vm| {
                match action {
                    Action::Hibernate => {
                        (vm.life, vm.is_displaced) = (Life::Freezing, may_make_room);
                    }
                    Action::Resume => vm.resumes = true,
                    Action::Preempt | Action::Rebalance => {}
                }
                (vm.market != Market::Spot).then(|| "it is not a spot VM".to_owned())
            });
            match action {
                Action::Preempt => self.has_notice(*vm),
                Action::Resume => self.takes_room(*vm),
                Action::Hibernate | Action::Rebalance => {}
            }
        }
    }

    /// A spot VM is to end, for a reason that `and` looks at.
    pub(super) fn preempted(&mut self, vm: VmId, and: impl FnOnce(&Followed) -> Option<String>) {
        self.on(vm, &ALIVE, "is given notice", |vm| match vm.market {
            Market::Spot => and(vm),
            Market::OnDemand => Some("it is not a spot VM".to_owned()),
        });
        self.has_notice(vm);
    }

    /// A VM is given notice.
    pub(super) fn has_notice(&mut self, id: VmId) {
        let now = self.now;
        self.on(id, &ALIVE, "is given notice", |vm| {
            let before = vm.notice.replace((now, vm.life != Life::Booting));
            before.map(|(at, _)| format!("it has had its notice since {at}"))
        });
    }

    /// The provider ends a VM.
    pub(super) fn is_taken(&mut self, id: VmId) {
        let (now, notice) = (self.now, self.setup.preemption_notice);
        self.on(id, &ALIVE, "is taken by its provider", |vm| match vm.notice {
            None => Some("it is taken without notice".to_owned()),
            Some((at, true)) if now < at + notice => {
                Some(format!("it is taken {} after its notice, not {notice}", now.since(at)))
            }
            _ => None,
        });
    }
}
