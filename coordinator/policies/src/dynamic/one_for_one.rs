//! One on-demand VM for each hibernated VM (HADS): launched as late as it can still do that VM's work by
//! the deadline.

use dormouse_cloud::Market;
use dormouse_units::{Span, Time, VmId};

use super::cluster_view::{ClusterView, DecisionContext};
use super::lateness::{is_hibernated, late_tasks};
use super::migration::AffectedTask;
use super::postponement::GRAIN;
use super::scheduled_vm::{QueuedTask, ScheduledVm};
use super::scheduler::BagScheduler;
use super::token::WakeupPurpose;
use crate::problem::KindId;
use dormouse_units::Mode;

/// The on-demand type that can be launched last to do the work of a hibernated VM, and the latest
/// launch time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReplacementType {
    kind: KindId,
    last: Time,
}

impl BagScheduler {
    /// Replaces each hibernated VM by one on-demand VM at the last moment at which such a VM can finish its tasks in time, and
    /// requests a wake-up for the next last moment.
    ///
    /// If a VM hibernated too late to be replaced, or if no on-demand VM can be had for its tasks, its tasks are migrated at once
    /// by Algorithm 4. So are tasks of a resumed VM that would end too late to survive another hibernation.
    pub(crate) fn replace_one_for_one(&mut self, context: &mut DecisionContext<'_>) {
        self.leave_late_vms(context);
        let waiting = self.view.machines.iter();
        let waiting = waiting.filter(|(_, machine)| is_hibernated(machine) && machine.has_work());
        let waiting: Vec<VmId> = waiting.map(|(&vm, _)| vm).collect();
        let mut next: Option<Time> = None;
        for vm in waiting {
            let Some(machine) = self.view.machines.get(&vm) else { continue };
            match find_replacement(&self.view, machine) {
                Some(found) if found.last > context.now + GRAIN => {
                    next = Some(next.map_or(found.last, |next| next.min(found.last)));
                }
                Some(found) if found.last + GRAIN >= context.now => {
                    self.replace_vm(context, vm, found.kind);
                }
                _ => self.migrate_frozen(context, vm),
            }
        }
        if let Some(at) = next.filter(|at| self.migrate_at != Some(*at)) {
            self.migrate_at = Some(at);
            context.ask_for_wakeup(at, WakeupPurpose::Migrate);
        }
    }

    /// Launches a VM of this type and gives it all tasks of the hibernated VM.
    fn replace_vm(&mut self, context: &mut DecisionContext<'_>, vm: VmId, kind: KindId) {
        let mut affected = self.affected_tasks(vm);
        // Work that is kept goes on first.
        affected.sort_by_key(|a| (!a.ran, a.task));
        let new = self.view.launch(context, kind, Market::OnDemand);
        for AffectedTask { task, reason, .. } in affected {
            self.view.withdraw_task(context, vm, task, false);
            self.view.enqueue_task(new, QueuedTask { task, mode: Mode::Burst, reason });
        }
    }

    /// Migrates, with a checkpoint, those tasks of running spot VMs that end too late to survive
    /// another hibernation because their VM resumed late.
    fn leave_late_vms(&mut self, context: &mut DecisionContext<'_>) {
        let mut late: Vec<(VmId, AffectedTask)> = Vec::new();
        for (&vm, machine) in &self.view.machines {
            let tasks = late_tasks(&self.view, context.now, machine);
            let is_late = |a: &AffectedTask| tasks.contains(&a.task);
            late.extend(self.affected_tasks(vm).into_iter().filter(is_late).map(|a| (vm, a)));
        }
        if late.is_empty() {
            return;
        }
        for (vm, a) in &late {
            self.view.withdraw_task(context, *vm, a.task, true);
        }
        self.migrate_tasks(context, late.into_iter().map(|(_, a)| a).collect(), false);
    }
}

/// The regular on-demand type of which a VM can be launched last to do all work of a hibernated VM in time;
/// among equals, the cheapest. In time means by the deadline, and early enough for the tasks that follow.
/// `None`: no type is available on which the VM's tasks can run in time.
fn find_replacement(view: &ClusterView, machine: &ScheduledVm) -> Option<ReplacementType> {
    let offers = view.problem.regular_types(Market::OnDemand);
    let found = offers.filter(|(kind, _)| view.launchable_vms(*kind, Market::OnDemand) > 0);
    let found = found.filter_map(|(kind, offer)| {
        let takes = view.time_on_new(machine, kind)?;
        let needed = (takes + view.problem.takeover_boot).as_micros();
        let due =
            machine.all_tasks().map(|task| view.latest_end(task)).min().unwrap_or(view.deadline());
        let last = Time::from_micros(due.as_micros().checked_sub(needed)?);
        Some((ReplacementType { kind, last }, offer.price(Market::OnDemand)))
    });
    let best = found.max_by_key(|(found, price)| (found.last, std::cmp::Reverse(*price)));
    best.map(|(found, _)| found)
}

impl ClusterView {
    /// Time that all tasks of a VM take on a new on-demand VM of this type, from the end of its boot;
    /// `None` if a task can't run on this type.
    fn time_on_new(&self, machine: &ScheduledVm, kind: KindId) -> Option<Span> {
        let offer = &self.problem.kinds[kind];
        let mut packing =
            crate::packing::VcpuPacking::new(offer.vcpus, Time::ZERO, offer.memory_limit);
        for task in machine.all_tasks() {
            let length = self.remaining_time(task, (kind, Market::OnDemand), Mode::Burst)?;
            packing.push(length, self.problem.task_memory(task));
        }
        Some(packing.last_end().since(Time::ZERO))
    }
}
