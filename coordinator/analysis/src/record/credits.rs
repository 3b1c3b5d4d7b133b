//! The CPU credits of a burstable VM over its life.

use dormouse_cloud::Catalogue;
use dormouse_units::{Credits, Time, VmId};

use super::{AttemptHistory, Record, VmHistory};

impl Record {
    /// A VM's balance whenever it was reported, and at its end: if it was idle since the last report,
    /// with what it earned meanwhile. Nothing of a VM that is not burstable.
    #[must_use]
    pub fn credits(&self, vm: VmId, catalogue: &Catalogue) -> Vec<(Time, Credits)> {
        let Some((vm, &(_, last))) =
            self.vms.get(&vm).and_then(|vm| Some((vm, vm.credits.last()?)))
        else {
            return Vec::new();
        };
        let end = vm.end_or(self.end());
        let at_end = self.earned_by(vm, end, catalogue).unwrap_or(last);
        vm.credits.iter().copied().chain([(end, at_end)]).collect()
    }

    /// The balance at the end of a VM that was idle since its last report.
    fn earned_by(&self, vm: &VmHistory, end: Time, catalogue: &Catalogue) -> Option<Credits> {
        let &(last, balance) = vm.credits.last()?;
        let burstable = catalogue.types.get(&vm.kind)?.burstable?;
        let is_busy = |a: &AttemptHistory| a.vm == vm.id && a.end_or(self.end()) > last;
        let rate = u128::from(burstable.earned_per_hour.as_vcpu_micros());
        let earned = rate * u128::from(vm.awake(last, end).as_micros()) / 3_600_000_000;
        let earned = Credits::from_vcpu_micros(u64::try_from(earned).unwrap_or(u64::MAX));
        let is_idle = !self.attempts().any(is_busy);
        is_idle.then(|| (balance + earned).min(burstable.cap.max(balance)))
    }
}
