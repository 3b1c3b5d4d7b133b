//! Acts of the provider: it interrupts VMs, changes prices and capacity, takes VMs away and gives them back.

use std::collections::VecDeque;

use dormouse_cloud::{
    AvailabilityChange, Interruption, InterruptionAction, InterruptionTarget, PriceChange,
    ProviderVm, ProviderVmState,
};
use dormouse_model::{Command, Effect, Notice, VmEnd};
use dormouse_units::{Time, VmId};
use dormouse_vm::PART_TO_SAVE;

use super::Run;
use crate::timers::RunTimer;

impl Run {
    pub(super) fn interrupt_vms(
        &mut self,
        now: Time,
        act: Interruption,
        notices: &mut VecDeque<Notice>,
    ) {
        let mut hit = self.provider.hit_by(now, &act);
        // The user's choice of what an interruption does goes before the law's.
        let otherwise = self.provider.take_otherwise(act.action, &mut hit);
        hit.retain(|&vm| match act.action {
            InterruptionAction::Hibernate => self.provider.hibernate_vm(vm),
            InterruptionAction::Resume => self.provider.resume_vm(vm),
            InterruptionAction::Preempt | InterruptionAction::Rebalance => true,
        });
        let left = self.provider.left_by(&act, &hit);
        if matches!(act.action, InterruptionAction::Hibernate | InterruptionAction::Resume) {
            // A VM can't freeze before it runs, but its capacity is gone all the same, until it is back.
            for vm in self.provider.booting_vms(&act.target) {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.hibernate_once_booted(act.action == InterruptionAction::Hibernate);
                }
            }
        }
        let Interruption { at: asked, target, action } = act;
        // It comes before what comes of it: a VM that still boots ends at once.
        let vms = hit.clone();
        self.effects.push(Effect::Interrupted { asked, action, target, vms, left });
        for vm in hit {
            let Some(host) = self.host_of(vm) else { continue };
            if let Some(record) = self.vms.get_mut(vm) {
                record.note_asked(asked);
            }
            match action {
                // It hears of all that are hit before it decides what becomes of one's tasks.
                InterruptionAction::Hibernate => {
                    self.freeze_vm(vm);
                    notices.push_back(Notice::VmHibernating { vm });
                }
                InterruptionAction::Resume => self.commands.push(Command::ThawVm { host, vm }),
                InterruptionAction::Preempt => self.preempt_vm(now, vm, notices),
                InterruptionAction::Rebalance => notices.push_back(Notice::VmRebalance { vm }),
            }
        }
        for (vm, action) in otherwise {
            let target = InterruptionTarget::Vm(vm);
            self.interrupt_vms(now, Interruption { at: asked, target, action }, notices);
        }
    }

    /// Preempts a VM: gives it notice, and kills it at the end of the notice. A VM that still boots has nothing to
    /// save, and is killed at once.
    pub(super) fn preempt_vm(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        if self.provider.find_vm(vm).is_some_and(|v| v.state == ProviderVmState::Booting) {
            return self.kill_vm(now, vm, notices);
        }
        if self.provider.hibernates_instead(vm) {
            let (target, action) = (InterruptionTarget::Vm(vm), InterruptionAction::Hibernate);
            return self.interrupt_vms(now, Interruption { at: now, target, action }, notices);
        }
        self.provider.given_notice(vm);
        let at = now + self.setup.preemption_notice;
        self.timers.set_timer(at, RunTimer::Kill(vm));
        if self.setup.checkpoint.at_notice {
            let saved_by = now + self.setup.preemption_notice.part(PART_TO_SAVE);
            self.checkpoint_at_notice(vm, saved_by);
        }
        notices.push_back(Notice::VmPreempting { vm, at });
    }

    /// Makes a VM give its room to `by`, by notice or hibernation as the provider's terms say.
    pub(super) fn displace_vm(
        &mut self,
        now: Time,
        vm: VmId,
        by: VmId,
        notices: &mut VecDeque<Notice>,
    ) {
        let hibernates = self.provider.find_vm(vm).is_some_and(ProviderVm::is_displaced);
        let action =
            if hibernates { InterruptionAction::Hibernate } else { InterruptionAction::Preempt };
        self.effects.push(Effect::Displaced { vm, by, action });
        if !hibernates {
            return self.preempt_vm(now, vm, notices);
        }
        if let Some(record) = self.vms.get_mut(vm) {
            record.note_asked(now);
        }
        self.freeze_vm(vm);
        notices.push_back(Notice::VmHibernating { vm });
    }

    /// Resumes VMs that hibernated to make room and now have their room back.
    pub(super) fn give_back(&mut self, now: Time) {
        for vm in self.provider.give_back(now) {
            let Some(host) = self.host_of(vm) else { continue };
            if let Some(record) = self.vms.get_mut(vm) {
                record.note_asked(now);
            }
            self.effects.push(Effect::GivenBack { vm });
            self.commands.push(Command::ThawVm { host, vm });
        }
    }

    /// Kills a VM for its provider.
    pub(super) fn kill_vm(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        let Some(host) = self.host_of(vm) else { return };
        self.counts.preemptions += 1;
        self.end_vm(now, vm, VmEnd::Preempted);
        self.commands.push(Command::DestroyVm { host, vm });
        notices.push_back(Notice::VmLost { vm });
    }

    pub(super) fn change_prices(&mut self, now: Time, notices: &mut VecDeque<Notice>) {
        for PriceChange { kind, price, outbid } in self.provider.change_prices(now) {
            self.effects.push(Effect::PriceChanged { kind: kind.clone(), price });
            if self.provider.is_watched(&kind) {
                notices.push_back(Notice::Price { kind: kind.clone(), price });
            }
            for vm in outbid {
                if !self.provider.hibernates_instead(vm) {
                    self.effects.push(Effect::Outbid { vm });
                }
                self.preempt_vm(now, vm, notices);
            }
            self.ask_at_price(now, &kind);
        }
    }

    pub(super) fn change_availability(&mut self, now: Time, notices: &mut VecDeque<Notice>) {
        for change in self.provider.change_availability(now) {
            let AvailabilityChange { kind, vms, before, reclaimed } = change;
            self.effects.push(Effect::AvailabilityChanged { kind: kind.clone(), vms });
            self.vms_reclaimed(now, reclaimed, notices);
            if vms > before && !self.refused.is_empty() {
                self.there_is_room();
                notices.push_back(Notice::Available { kind });
            }
        }
    }

    /// Gives notice to VMs that exceed the provider's limits.
    pub(super) fn vms_reclaimed(
        &mut self,
        now: Time,
        vms: Vec<VmId>,
        notices: &mut VecDeque<Notice>,
    ) {
        for vm in vms {
            if !self.provider.hibernates_instead(vm) {
                self.effects.push(Effect::Reclaimed { vm });
            }
            self.preempt_vm(now, vm, notices);
        }
    }
}
