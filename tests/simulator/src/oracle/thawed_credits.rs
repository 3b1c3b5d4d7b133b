//! Checks that a VM earns credits only while its machine runs, by the balances that its worker reports.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_proto::v1::command::Command;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// Real time for which a VM may earn beyond the time in which its machine runs, in microseconds: a freeze and a thaw take
/// time.
const SLACK_US: u64 = 30_000;

/// A VM that earns credits, on its worker. Times are real microseconds of the worker's session, amounts the time of one
/// vCPU in emulated microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct EarningVm {
    /// Credits that the VM earns in an emulated hour.
    hourly: u64,
    /// The newest balance that was reported, with its time.
    reported: Option<(u64, u64)>,
    /// The time of that balance on the run's clock, in emulated microseconds.
    clock_us: Option<u64>,
    /// Since when the machine is frozen, if it is.
    frozen_since: Option<u64>,
    /// Time since the newest balance in which the machine was frozen.
    frozen_us: u64,
}

impl EarningVm {
    /// Notes that the machine is frozen from `at_us` on, or runs again.
    fn set_frozen(&mut self, is_frozen: bool, at_us: u64) {
        match (is_frozen, self.frozen_since) {
            (true, None) => self.frozen_since = Some(at_us),
            (false, Some(since)) => {
                self.frozen_us += at_us.saturating_sub(since);
                self.frozen_since = None;
            }
            _ => {}
        }
    }

    /// Takes in a balance of the time `at_us`, and of `clock_us` on the run's clock; returns the most that it can be, if that
    /// is less than `balance`. Only a balance after a hibernation is judged, and none after a jump of the run's clock: a VM earns
    /// while nobody counts.
    fn see_balance(
        &mut self,
        balance: u64,
        (at_us, clock_us): (u64, Option<u64>),
        speedup: u32,
    ) -> Option<u64> {
        if let Some(frozen_since) = &mut self.frozen_since {
            self.frozen_us += at_us.saturating_sub(*frozen_since);
            *frozen_since = at_us;
        }
        let frozen = std::mem::take(&mut self.frozen_us);
        let clock = std::mem::replace(&mut self.clock_us, clock_us).zip(clock_us);
        let (before, since) = self.reported.replace((balance, at_us))?;
        let passed = u128::from(at_us.saturating_sub(since) + SLACK_US) * u128::from(speedup);
        let goes_on = |(then, now): (u64, u64)| now >= then && u128::from(now - then) <= passed;
        if frozen == 0 || !clock.is_some_and(goes_on) {
            return None;
        }
        let ran = at_us.saturating_sub(since).saturating_sub(frozen);
        let emulated = u128::from(ran + SLACK_US) * u128::from(speedup);
        let earned = u128::from(self.hourly) * emulated / 3_600_000_000;
        let most = before.saturating_add(u64::try_from(earned).unwrap_or(u64::MAX));
        (balance > most + 1_000 + most / 100_000).then_some(most)
    }
}

/// The VMs that earn credits, by worker session.
#[derive(Debug)]
pub(super) struct ThawedCredits {
    /// The names of the workers that lie, whose reports are not checked.
    liars: BTreeSet<String>,
    /// Emulated time that passes in a real one.
    speedup: u32,
    vms: BTreeMap<(String, u64, u32), EarningVm>,
}

impl ThawedCredits {
    /// A record of a run at this speed-up, in which the workers of these names lie.
    pub(super) const fn new(liars: BTreeSet<String>, speedup: u32) -> Self {
        Self { liars, speedup, vms: BTreeMap::new() }
    }

    /// Checks what a worker was told or has reported, and notes what its machine did.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        match deed {
            Deed::Obeyed { worker, incarnation, command, .. } => {
                if let Some(Command::CreateVm(create)) = &command.command
                    && let Some(earns) = &create.burstable
                {
                    let hourly = earns.emulated_earned_us_per_hour;
                    let vm = EarningVm { hourly, ..EarningVm::default() };
                    self.vms.insert((worker.clone(), *incarnation, create.vm), vm);
                }
            }
            Deed::VmFreezeChanged { worker, incarnation, vm, is_frozen, at_us } => {
                let of = (worker.clone(), *incarnation, vm.get());
                if let Some(known) = self.vms.get_mut(&of) {
                    known.set_frozen(*is_frozen, *at_us);
                }
            }
            Deed::BalanceSaid { worker, incarnation, vm, balance_us, emulated_at_us, at_us }
                if !self.liars.contains(worker) =>
            {
                let known = self.vms.get_mut(&(worker.clone(), *incarnation, *vm));
                let seen = |known: &mut EarningVm| {
                    known.see_balance(*balance_us, (*at_us, *emulated_at_us), self.speedup)
                };
                if let Some(most) = known.and_then(seen) {
                    let why = format!(
                        "{worker} reports {balance_us} vCPU-µs of credits of vm{vm}; {most} are most"
                    );
                    return Err((Invariant::Credits, why));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_earned_while_a_machine_is_frozen() {
        const SEC: u64 = 1_000_000;
        let mut vm = EarningVm { hourly: 36 * SEC, ..EarningVm::default() };
        let balances = |vm: &mut EarningVm, all: [(u64, u64); 2]| {
            let clock = |secs| (secs * SEC, Some(100 * secs * SEC));
            all.map(|(balance, secs)| vm.see_balance(balance, clock(secs), 100))
        };
        // What was frozen before anything was reported does not count. An emulated hour is 36 s.
        vm.set_frozen(true, 0);
        vm.set_frozen(false, 0);
        vm.frozen_us = 30 * SEC;
        assert_eq!(balances(&mut vm, [(5 * SEC, 0), (41 * SEC, 36)]), [None, None]);
        vm.set_frozen(true, 40 * SEC);
        vm.set_frozen(false, 60 * SEC);
        assert_eq!(balances(&mut vm, [(57 * SEC, 72), (93 * SEC, 108)]), [None, None]);
        vm.set_frozen(true, 110 * SEC);
        vm.set_frozen(false, 130 * SEC);
        let most = 93 * SEC + (16 * SEC + SLACK_US);
        let later = (144 * SEC, Some(14_400 * SEC));
        assert_eq!(vm.see_balance(113 * SEC, later, 100), Some(most));
        let after_a_jump = (145 * SEC, Some(90_000 * SEC));
        assert_eq!(vm.see_balance(999 * SEC, after_a_jump, 100), None);
    }
}
