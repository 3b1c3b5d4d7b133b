//! Idle VMs and the ends of their allocation cycles (Burst-HADS III-D).

use dormouse_units::{Span, Time, VmId};

use super::cluster_view::DecisionContext;
use super::lateness::is_busy_spot;
use super::scheduled_vm::{ScheduledVm, VmPhase};
use super::scheduler::BagScheduler;
use super::token::WakeupPurpose;
use crate::StealMoment;

impl BagScheduler {
    /// Handles a VM that may have become idle: it gets tasks that have no VM, steals, or waits for
    /// the end of its cycle. Schedulers that keep no idle VMs terminate it.
    pub(crate) fn if_idle(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        if !self.is_idle(vm) {
            return;
        }
        self.place_unplaced(context);
        if self.steal_moment == StealMoment::WhenIdle {
            self.steal_tasks(context, vm);
        }
        if !self.is_idle(vm) || self.is_burstable(vm) {
            return;
        }
        let Some(cycle) = self.parts.keep_idle else {
            return self.view.terminate_vm(context, vm);
        };
        let Some(machine) = self.view.machines.get_mut(&vm) else { return };
        let end = cycle_end(machine.cycle_from, cycle, context.now);
        if machine.cycle_wake != Some(end) {
            machine.cycle_wake = Some(end);
            context.ask_for_wakeup(end, WakeupPurpose::CycleEnd(vm));
        }
    }

    /// Handles the end of a VM's allocation cycle: an idle VM steals now or, unless burstable, is
    /// terminated.
    pub(crate) fn cycle_ended(&mut self, context: &mut DecisionContext<'_>, vm: VmId) {
        let due = self.view.machines.get_mut(&vm).is_some_and(|machine| {
            let due = machine.cycle_wake.is_some_and(|at| at <= context.now);
            machine.cycle_wake = machine.cycle_wake.filter(|_| !due);
            due
        });
        if !due || !self.is_idle(vm) {
            return;
        }
        self.steal_tasks(context, vm);
        if self.is_idle(vm) && !self.is_burstable(vm) {
            self.view.terminate_vm(context, vm);
            self.place_unplaced(context);
        }
    }

    /// Terminates all idle VMs once no spot VM works, if the scheduler keeps them only beside
    /// working spot VMs.
    pub(crate) fn end_idle_without_spot(&mut self, context: &mut DecisionContext<'_>) {
        if !self.parts.only_beside_spot || self.view.machines.values().any(is_busy_spot) {
            return;
        }
        let is_free = |m: &ScheduledVm| m.is_idle() && m.leaving.is_empty();
        let machines = self.view.machines.iter();
        let idle: Vec<VmId> = machines.filter(|(_, m)| is_free(m)).map(|(&vm, _)| vm).collect();
        if idle.is_empty() {
            return;
        }
        for vm in idle {
            self.view.terminate_vm(context, vm);
        }
        self.place_unplaced(context);
    }

    fn is_idle(&self, vm: VmId) -> bool {
        self.view.machines.get(&vm).is_some_and(|m| m.phase == VmPhase::Ready && m.is_idle())
    }

    fn is_burstable(&self, vm: VmId) -> bool {
        let machine = self.view.machines.get(&vm);
        machine.is_some_and(|m| self.view.type_of_vm(m).burstable.is_some())
    }
}

/// The end of the allocation cycle in which `now` lies; cycles of length `cycle` begin at `from`.
pub(crate) fn cycle_end(from: Time, cycle: Span, now: Time) -> Time {
    let passed = now.since(from).as_micros() / cycle.as_micros().max(1);
    from + cycle.times(passed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_ends_after_now() {
        let end = |now| cycle_end(Time::from_secs(180), Span::from_secs(900), Time::from_secs(now));
        assert_eq!(
            [end(180), end(1_079), end(1_080)],
            [Time::from_secs(1_080), Time::from_secs(1_080), Time::from_secs(1_980)]
        );
    }
}
