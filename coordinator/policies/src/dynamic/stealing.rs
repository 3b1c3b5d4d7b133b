//! The burst work-stealing procedure (Burst-HADS Algorithm 5).

use std::cmp::Reverse;

use dormouse_cloud::Market;
use dormouse_model::StartReason;
use dormouse_units::{TaskId, Time, VmId};

use super::cluster_view::DecisionContext;
use super::scheduled_vm::{QueuedTask, ScheduledVm};
use super::scheduler::BagScheduler;
use super::sites::PlacementSite;
use super::takeover_forecast::survives_theft;
use crate::packing::VcpuPacking;
use dormouse_units::Mode;

/// Rules for what idle VMs steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StealingRule {
    /// Idle VMs steal nothing: the plan is carried out as it is.
    Never,
    /// Spot VMs take tasks off on-demand VMs, whatever the makespan (HADS saves money).
    OffOnDemand,
    /// Any VM steals tasks from any non-burstable VM, from on-demand ones first, if they then end sooner.
    IfSooner,
    /// Any VM steals tasks from any non-burstable VM, from on-demand ones first, if they then end by D.
    IfInTime,
}

/// A task that could be stolen: the last in its VM's queue.
#[derive(Clone, Copy)]
struct StealableTask {
    victim: VmId,
    market: Market,
    task: TaskId,
    end: Time,
}

impl BagScheduler {
    /// Lets an idle VM take over tasks that wait for vCPUs of other VMs.
    ///
    /// [choice] Running tasks are left where they are: a move would cost them their work since the
    /// last checkpoint.
    pub(crate) fn steal_tasks(&mut self, context: &mut DecisionContext<'_>, thief: VmId) {
        let rule = self.parts.stealing;
        let Some(machine) = self.view.machines.get(&thief).filter(|m| m.is_idle()) else { return };
        let mut site = self.view.site_of_vm(context.now, thief, machine);
        let burstable = self.view.type_of_vm(machine).burstable.is_some();
        if rule == StealingRule::Never
            || (rule == StealingRule::OffOnDemand && site.market != Market::Spot)
        {
            return;
        }
        let mode = if burstable { Mode::Baseline } else { Mode::Burst };
        let mut packing = VcpuPacking::default();
        let mut all = self.stealable_tasks(context.now, thief, &mut packing);
        while let Some(stealable) = self.worth_stealing(&all, context.now, thief, &site, mode) {
            let Some((_, length)) = self.view.at_all(&site, stealable.task, mode) else { break };
            let memory = self.view.problem.task_memory(stealable.task);
            site.packing.push(length, memory);
            site.longest = site.longest.max(self.view.problem.longest_time(stealable.task));
            self.view.withdraw_task(context, stealable.victim, stealable.task, false);
            let reason = StartReason::Stolen;
            self.view.enqueue_task(thief, QueuedTask { task: stealable.task, mode, reason });
            self.on_robbed(context, stealable.victim);
            if burstable {
                break;
            }
            // Only this victim's last task has changed.
            all.retain(|other| other.victim != stealable.victim);
            all.extend(self.last_queued(context.now, stealable.victim, &mut packing));
            sort_stealable(&mut all);
        }
        self.view.dispatch_tasks(context, thief);
    }

    /// Tasks that could be stolen from other VMs: first the tasks of on-demand VMs; of equal ones first the task that
    /// would end last.
    fn stealable_tasks(
        &self,
        now: Time,
        thief: VmId,
        packing: &mut VcpuPacking,
    ) -> Vec<StealableTask> {
        let victims = self.view.machines.keys().filter(|vm| **vm != thief);
        let mut stealable: Vec<_> =
            victims.filter_map(|&vm| self.last_queued(now, vm, packing)).collect();
        sort_stealable(&mut stealable);
        stealable
    }

    /// The first of the candidates that the rule allows to steal.
    fn worth_stealing(
        &self,
        stealable: &[StealableTask],
        now: Time,
        thief: VmId,
        site: &PlacementSite,
        mode: Mode,
    ) -> Option<StealableTask> {
        let is_worth = |l: &&StealableTask| {
            self.view.at_all(site, l.task, mode).is_some_and(|(slot, _)| {
                self.view.is_safe(site, l.task, slot)
                    && match self.parts.stealing {
                        StealingRule::Never => false,
                        StealingRule::IfSooner => slot.end < l.end,
                        StealingRule::IfInTime => true,
                        StealingRule::OffOnDemand => {
                            let vms = (l.victim, thief);
                            survives_theft(&self.view, now, vms, l.task)
                        }
                    }
            })
        };
        stealable.iter().find(is_worth).copied()
    }

    fn is_victim(&self, machine: &ScheduledVm) -> bool {
        let market =
            machine.market == Market::OnDemand || self.parts.stealing != StealingRule::OffOnDemand;
        market && machine.takes_work() && self.view.type_of_vm(machine).burstable.is_none()
    }

    /// The last task in a VM's queue, which could be stolen; `None`: nothing can be stolen from the VM. `packing` is a buffer to
    /// compute the task's end.
    fn last_queued(&self, now: Time, vm: VmId, packing: &mut VcpuPacking) -> Option<StealableTask> {
        let machine = self.view.machines.get(&vm).filter(|machine| self.is_victim(machine))?;
        let task = machine.queue.back()?.task;
        self.view.run_only(packing, now, machine);
        let mut end = now;
        for q in &machine.queue {
            let length = self.view.remaining_time(q.task, machine.offer_of_vm(), q.mode)?;
            end = packing.push(length, self.view.problem.task_memory(q.task)).end;
        }
        Some(StealableTask { victim: vm, market: machine.market, task, end })
    }

    /// Terminates a VM whose last task was stolen while the VM still boots, before the VM costs anything.
    fn on_robbed(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let machine = self.view.machines.get(&vm);
        if machine
            .is_some_and(|m| m.phase == super::scheduled_vm::VmPhase::Booting && !m.has_work())
        {
            self.view.terminate_vm(context, vm);
        }
    }
}

fn sort_stealable(stealable: &mut [StealableTask]) {
    stealable.sort_by_key(|l| (l.market == Market::Spot, Reverse(l.end), l.victim));
}
