//! Idle VMs and the ends of their allocation cycles (Burst-HADS III-D).

use dormouse_units::{Span, Time, VmId};

use super::floor::Turn;
use super::lateness::is_busy_spot;
use super::machine::{Machine, Phase};
use super::scheduler::BagScheduler;
use super::token::Purpose;
use crate::StealMoment;

impl BagScheduler {
    /// Handles a VM that may have become idle: it takes tasks without a place, steals, or waits for
    /// the end of its cycle. A scheduler that keeps no idle VMs gives it back.
    pub(crate) fn if_idle(&mut self, turn: &mut Turn<'_>, vm: VmId) {
        if !self.is_idle(vm) {
            return;
        }
        self.place_unplaced(turn);
        if self.steal_moment == StealMoment::WhenIdle {
            self.steal(turn, vm);
        }
        if !self.is_idle(vm) || self.is_burstable(vm) {
            return;
        }
        let Some(cycle) = self.parts.keep_idle else {
            return self.floor.terminate(turn, vm);
        };
        let Some(machine) = self.floor.machines.get_mut(&vm) else { return };
        let end = cycle_end(machine.cycle_from, cycle, turn.now);
        if machine.cycle_wake != Some(end) {
            machine.cycle_wake = Some(end);
            turn.wake(end, Purpose::CycleEnd(vm));
        }
    }

    /// Handles the end of a VM's cycle: if idle, the VM steals now or, unless burstable, is given
    /// back.
    pub(crate) fn cycle_ended(&mut self, turn: &mut Turn<'_>, vm: VmId) {
        let due = self.floor.machines.get_mut(&vm).is_some_and(|machine| {
            let due = machine.cycle_wake.is_some_and(|at| at <= turn.now);
            machine.cycle_wake = machine.cycle_wake.filter(|_| !due);
            due
        });
        if !due || !self.is_idle(vm) {
            return;
        }
        self.steal(turn, vm);
        if self.is_idle(vm) && !self.is_burstable(vm) {
            self.floor.terminate(turn, vm);
            self.place_unplaced(turn);
        }
    }

    /// Gives all idle VMs back once no spot VM works, where they are kept only beside working spot
    /// VMs.
    pub(crate) fn end_idle_without_spot(&mut self, turn: &mut Turn<'_>) {
        if !self.parts.only_beside_spot || self.floor.machines.values().any(is_busy_spot) {
            return;
        }
        let is_free = |m: &Machine| m.is_idle() && m.leaving.is_empty();
        let machines = self.floor.machines.iter();
        let idle: Vec<VmId> = machines.filter(|(_, m)| is_free(m)).map(|(&vm, _)| vm).collect();
        if idle.is_empty() {
            return;
        }
        for vm in idle {
            self.floor.terminate(turn, vm);
        }
        self.place_unplaced(turn);
    }

    fn is_idle(&self, vm: VmId) -> bool {
        self.floor.machines.get(&vm).is_some_and(|m| m.phase == Phase::Ready && m.is_idle())
    }

    fn is_burstable(&self, vm: VmId) -> bool {
        let machine = self.floor.machines.get(&vm);
        machine.is_some_and(|m| self.floor.kind(m).burstable.is_some())
    }
}

/// The end of the allocation cycle that `now` is in.
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
