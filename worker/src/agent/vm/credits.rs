//! CPU credits from measured use.

use std::time::{Duration, Instant};

use dormouse_proto::v1::{CreditBalance, report};
use dormouse_units::Credits;

use super::owner::Owner;
use crate::agent::report::report;

/// The turn of the credits is computed for tasks that never pause; where they use a little
/// less, it comes later. This is how often it is looked at then.
const SHORTEST: Duration = Duration::from_millis(5);

impl Owner {
    /// Passes emulated time up to now to the machine, with what was really used in it.
    pub(crate) fn pass(&mut self) {
        if self.machine.credits().is_none() {
            return;
        }
        for cpu in 0..self.groups.vcpus() {
            self.settle(cpu);
        }
        let now = Instant::now();
        let span = self.host.emulated(now.saturating_duration_since(self.credited));
        let used = Credits::from_vcpu_micros(std::mem::take(&mut self.used_vcpu_us));
        self.machine.pass_measured(span, used);
        self.credited = now;
    }

    /// When the credits change how fast the VM runs.
    pub(crate) fn credits_turn_at(&self) -> Option<Instant> {
        let span = self.machine.credits_turn_after()?;
        let at = self.credited + self.host.real(span).min(Duration::from_secs(86_400));
        Some(at.max(self.credited + SHORTEST))
    }

    /// The use has changed: says what is left.
    pub(crate) fn report_credits(&mut self) {
        self.pass();
        if let Some(balance) = self.machine.credits() {
            self.host.report(report(report::Report::Credits(CreditBalance {
                vm: self.id,
                vcpu_us: balance.as_vcpu_micros(),
            })));
        }
    }
}
