//! Consequences of interruptions: when they took effect, and the work that was lost.

use std::collections::BTreeSet;

use dormouse_cloud::{InterruptionAction, InterruptionModel, InterruptionTarget};
use dormouse_units::{Span, Time, VmId};

use super::{AttemptHistory, ProviderAct, RunRecord, TaskHistory, VmHibernation};

impl RunRecord {
    /// Time that an attempt computed in vain.
    #[must_use]
    pub fn lost(&self, attempt: &AttemptHistory) -> Span {
        self.vms.get(&attempt.vm).map_or(Span::ZERO, |vm| attempt.lost(vm))
    }

    /// Time that all attempts together computed in vain.
    #[must_use]
    pub fn work_lost(&self) -> Span {
        self.attempts().map(|attempt| self.lost(attempt)).sum()
    }

    /// Time for which the attempts that ended on `vm` between `from` and `until` had computed in vain.
    #[must_use]
    pub fn lost_on(&self, vm: VmId, from: Time, until: Time) -> Span {
        let ended = |a: &&AttemptHistory| {
            a.ended.as_ref().is_some_and(|(at, _)| (from..=until).contains(at))
        };
        self.attempts().filter(|a| a.vm == vm).filter(ended).map(|a| self.lost(a)).sum()
    }

    /// Time that attempts computed in vain because of an act of the provider: on each affected VM,
    /// until the VM was resumed or gone. `None` if no VM was affected.
    #[must_use]
    pub fn lost_by(&self, by: &ProviderAct) -> Option<Span> {
        let until = |vm| {
            let mut all = self.vms.get(&vm)?.hibernations.iter();
            all.find(|h| h.frozen >= by.at)?.resumed.map(|(_, resumed)| resumed)
        };
        let lost = |&vm| self.lost_on(vm, by.at, until(vm).unwrap_or(self.end()));
        (!by.vms.is_empty()).then(|| match by.action {
            InterruptionAction::Resume | InterruptionAction::Rebalance => Span::ZERO,
            InterruptionAction::Hibernate | InterruptionAction::Preempt => {
                by.vms.iter().map(lost).sum()
            }
        })
    }

    /// Time at which an act of the provider had taken effect on all affected VMs, as far as it did; `None` if it took effect on no
    /// VM.
    #[must_use]
    pub fn took_effect(&self, of: &ProviderAct) -> Option<Time> {
        let effect = |vm: &VmId| {
            let vm = self.vms.get(vm)?;
            let resumed = |h: &VmHibernation| h.resumed.filter(|resumed| resumed.0 == of.asked);
            match of.action {
                InterruptionAction::Hibernate => {
                    vm.hibernations.iter().find(|h| h.asked == of.asked).map(|h| h.frozen)
                }
                InterruptionAction::Resume => {
                    vm.hibernations.iter().find_map(resumed).map(|(_, at)| at)
                }
                InterruptionAction::Preempt => vm.ended.map(|(at, ..)| at),
                InterruptionAction::Rebalance => Some(of.at),
            }
        };
        of.vms.iter().filter_map(effect).max()
    }

    /// Number of tasks that finished on a VM, without those whose program failed.
    #[must_use]
    pub fn finished_on(&self, vm: VmId) -> usize {
        let there = |task: &&TaskHistory| {
            task.finished.is_some()
                && !task.program_failed
                && task.last().is_some_and(|a| a.vm == vm)
        };
        self.tasks.iter().filter(there).count()
    }

    /// VMs named by these interruption schedules that were never launched: nothing was done to
    /// them.
    #[must_use]
    pub fn never_launched(&self, by: &[InterruptionModel]) -> BTreeSet<VmId> {
        let acts = by.iter().flat_map(|model| match model {
            InterruptionModel::Schedule { acts } => acts.as_slice(),
            _ => &[],
        });
        let named = acts.filter_map(|act| match act.target {
            InterruptionTarget::Vm(vm) => Some(vm),
            InterruptionTarget::Type(_) | InterruptionTarget::Zone(_) | InterruptionTarget::All => {
                None
            }
        });
        named.filter(|vm| !self.vms.contains_key(vm)).collect()
    }

    pub(super) fn attempts(&self) -> impl Iterator<Item = &AttemptHistory> {
        self.tasks.iter().flat_map(|task| &task.attempts)
    }
}
