//! The burst work-stealing procedure (Burst-HADS Algorithm 5).

use std::cmp::Reverse;

use dormouse_cloud::Market;
use dormouse_model::StartReason;
use dormouse_units::{TaskId, Time, VmId};

use super::floor::Turn;
use super::foresight::survives_theft;
use super::machine::{Machine, Queued};
use super::scheduler::BagScheduler;
use super::sites::Site;
use crate::packing::Packing;
use dormouse_units::Mode;

/// Rules for what idle VMs steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stealing {
    /// Idle VMs steal nothing: the plan is carried out as it is.
    Never,
    /// Spot VMs take tasks off on-demand VMs, whatever the makespan (HADS saves money).
    OffOnDemand,
    /// Any VM takes tasks off any non-burstable VM, off on-demand ones first, if they end sooner.
    IfSooner,
    /// Any VM takes tasks off any non-burstable VM, off on-demand ones first, if they end by D.
    IfInTime,
}

/// A task that could be stolen: the last in its VM's queue.
#[derive(Clone, Copy)]
struct Stealable {
    victim: VmId,
    market: Market,
    task: TaskId,
    end: Time,
}

impl BagScheduler {
    /// An idle VM takes over tasks that wait for vCPUs of others.
    ///
    /// [choice] Running tasks are left where they are: a move would cost them their work since the
    /// last checkpoint.
    pub(crate) fn steal(&mut self, turn: &mut Turn<'_>, thief: VmId) {
        let rule = self.parts.stealing;
        let Some(machine) = self.floor.machines.get(&thief).filter(|m| m.is_idle()) else { return };
        let mut site = self.floor.site(turn.now, thief, machine);
        let burstable = self.floor.kind(machine).burstable.is_some();
        if rule == Stealing::Never || (rule == Stealing::OffOnDemand && site.market != Market::Spot)
        {
            return;
        }
        let mode = if burstable { Mode::Baseline } else { Mode::Burst };
        let mut packing = Packing::default();
        let mut all = self.stealable(turn.now, thief, &mut packing);
        while let Some(stealable) = self.worth(&all, turn.now, thief, &site, mode) {
            let Some((_, length)) = self.floor.at_all(&site, stealable.task, mode) else { break };
            let memory = self.floor.problem.memory(stealable.task);
            site.packing.push(length, memory);
            site.longest = site.longest.max(self.floor.problem.longest(stealable.task));
            self.floor.withdraw(turn, stealable.victim, stealable.task, false);
            let reason = StartReason::Stolen;
            self.floor.enqueue(thief, Queued { task: stealable.task, mode, reason });
            self.robbed(turn, stealable.victim);
            if burstable {
                break;
            }
            // Only this victim's last task has changed.
            all.retain(|other| other.victim != stealable.victim);
            all.extend(self.last(turn.now, stealable.victim, &mut packing));
            sort(&mut all);
        }
        self.floor.dispatch(turn, thief);
    }

    /// Tasks that could be stolen, those of on-demand victims first; among equals those that would
    /// end last.
    fn stealable(&self, now: Time, thief: VmId, packing: &mut Packing) -> Vec<Stealable> {
        let victims = self.floor.machines.keys().filter(|vm| **vm != thief);
        let mut stealable: Vec<_> = victims.filter_map(|&vm| self.last(now, vm, packing)).collect();
        sort(&mut stealable);
        stealable
    }

    /// The first task worth stealing.
    fn worth(
        &self,
        stealable: &[Stealable],
        now: Time,
        thief: VmId,
        site: &Site,
        mode: Mode,
    ) -> Option<Stealable> {
        let is_worth = |l: &&Stealable| {
            self.floor.at_all(site, l.task, mode).is_some_and(|(slot, _)| {
                self.floor.safe(site, l.task, slot)
                    && match self.parts.stealing {
                        Stealing::Never => false,
                        Stealing::IfSooner => slot.end < l.end,
                        Stealing::IfInTime => true,
                        Stealing::OffOnDemand => {
                            let vms = (l.victim, thief);
                            survives_theft(&self.floor, now, vms, l.task)
                        }
                    }
            })
        };
        stealable.iter().find(is_worth).copied()
    }

    fn is_victim(&self, machine: &Machine) -> bool {
        let market =
            machine.market == Market::OnDemand || self.parts.stealing != Stealing::OffOnDemand;
        market && machine.takes_work() && self.floor.kind(machine).burstable.is_none()
    }

    /// The task that could be stolen off a VM; `packing` is a buffer to compute its end.
    fn last(&self, now: Time, vm: VmId, packing: &mut Packing) -> Option<Stealable> {
        let machine = self.floor.machines.get(&vm).filter(|machine| self.is_victim(machine))?;
        let task = machine.queue.back()?.task;
        self.floor.run_only(packing, now, machine);
        let mut end = now;
        for q in &machine.queue {
            let length = self.floor.remaining(q.task, machine.offer(), q.mode)?;
            end = packing.push(length, self.floor.problem.memory(q.task)).end;
        }
        Some(Stealable { victim: vm, market: machine.market, task, end })
    }

    /// Gives a victim back, before it costs anything, if it still boots and has no task left.
    fn robbed(&mut self, turn: &mut Turn<'_>, vm: VmId) {
        let machine = self.floor.machines.get(&vm);
        if machine.is_some_and(|m| m.phase == super::machine::Phase::Booting && !m.has_work()) {
            self.floor.terminate(turn, vm);
        }
    }
}

fn sort(stealable: &mut [Stealable]) {
    stealable.sort_by_key(|l| (l.market == Market::Spot, Reverse(l.end), l.victim));
}
