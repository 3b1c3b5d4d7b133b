//! CPU credits of a burstable VM over its life.

use dormouse_cloud::{BurstableTerms, Catalogue};
use dormouse_units::{Credits, Mode, Span, Time, VmId};

use super::declared_use::declared_balances;
use super::{AttemptHistory, RunRecord, VmHibernation, VmHistory};

/// Microseconds in an hour.
const HOUR: i128 = 3_600_000_000;

/// A credit balance, and the time at which the VM had it.
type Balance = (Time, Credits);

impl RunRecord {
    /// Balance of a VM over its life: a point at its launch, at each report, and at its end or the
    /// end of the record. Before the first and after the last report the balance is computed: the
    /// VM earns credits by its type, and its tasks spend credits by their CPU modes; a hibernated
    /// VM neither earns nor spends. The balance is linear between two points. Empty for a VM that
    /// is not burstable.
    #[must_use]
    pub fn credits(&self, vm: VmId, catalogue: &Catalogue) -> Vec<Balance> {
        let Some(vm) = self.vms.get(&vm) else { return Vec::new() };
        let end = vm.end_or(self.end());
        let burstable = catalogue.types.get(&vm.kind).and_then(|kind| kind.burstable);
        let Some(burstable) = burstable else { return vm.credits.to_vec() };
        if !vm.declared_uses.is_empty() {
            return declared_balances(vm, &burstable, end);
        }
        let begun = (vm.launched, burstable.initial.min(burstable.cap));
        // A VM has no task before its first report, which comes with the first task.
        let before = vm.credits.first().map_or(Vec::new(), |&(first, _)| {
            let mut idle = extrapolate(&vm.hibernations, (begun, first), (&burstable, 0));
            idle.retain(|(at, _)| *at < first);
            idle
        });
        let last = vm.credits.last().copied().unwrap_or(begun);
        let spent = self.spent_at(vm, last.0, &burstable);
        // Surplus credits are spent by another law, and are always reported.
        let after = match burstable.surplus.is_some() && spent > 0 {
            true => vec![(end, last.1)],
            false => extrapolate(&vm.hibernations, (last, end), (&burstable, spent)),
        };
        let later = |than: Time| move |(at, _): &Balance| *at > than;
        let before = before.into_iter().filter(later(begun.0));
        let after = after.into_iter().filter(later(last.0));
        let told = vm.credits.iter().copied();
        [begun].into_iter().chain(before).chain(told).chain(after).collect()
    }

    /// CPU use of a VM's tasks from `at` on, in millionths of a vCPU.
    fn spent_at(&self, vm: &VmHistory, at: Time, burstable: &BurstableTerms) -> u64 {
        let is_busy = |a: &&AttemptHistory| {
            a.vm == vm.id && a.started.is_some_and(|s| s <= at) && a.end_or(self.end()) > at
        };
        let mode = |a: &AttemptHistory| {
            let mode = a.modes.iter().rev().find(|(from, _)| *from <= at);
            mode.map_or(a.first_mode(), |(_, mode)| *mode)
        };
        let spent = |a: &AttemptHistory| match mode(a) {
            Mode::Burst => 1_000_000,
            Mode::Baseline => u64::from(burstable.baseline.get()),
        };
        self.attempts().filter(is_busy).map(spent).sum()
    }
}

/// The balance at each change of its slope until `until`, and at `until`, at a constant use in
/// millionths of a vCPU.
fn extrapolate(
    hibernations: &[VmHibernation],
    ((from, balance), until): (Balance, Time),
    (burstable, spent): (&BurstableTerms, u64),
) -> Vec<Balance> {
    // vCPU-microseconds per hour.
    let earned = i128::from(burstable.earned_per_hour.as_vcpu_micros());
    let slope = earned - i128::from(spent) * 3_600;
    let cap = i128::from(burstable.cap.max(balance).as_vcpu_micros());
    let mut is = i128::from(balance.as_vcpu_micros());
    let credits = |is: i128| Credits::from_vcpu_micros(u64::try_from(is).unwrap_or(0));
    // A damaged log may have a balance that came after its VM's end.
    let until = until.max(from);
    let (mut at, mut points) = (from, Vec::new());
    let frozen = hibernations.iter().map(|h| (h.frozen, h.resumed.map_or(until, |(_, at)| at)));
    for (stands, goes) in frozen.chain([(until, until)]) {
        let (stands, goes) = (stands.clamp(at, until), goes.clamp(at, until));
        let gained = slope.saturating_mul(i128::from(stands.since(at).as_micros())) / HOUR;
        let then = is.saturating_add(gained);
        // The balance stays at the cap or at zero.
        let bound = if then > cap { Some(cap) } else { (then < 0).then_some(0) };
        if let Some(bound) = bound.filter(|bound| *bound != is) {
            let after = u64::try_from((bound - is) * HOUR / slope).unwrap_or(0);
            points.push((at + Span::from_micros(after), credits(bound)));
        }
        is = bound.unwrap_or(then);
        points.extend([(stands, credits(is)), (goes, credits(is))]);
        at = goes;
    }
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use dormouse_units::Ppm;

    use super::*;

    /// A burstable type that earns one credit a minute, begins with two credits and holds at most ten.
    fn burstable() -> BurstableTerms {
        let [initial, cap] = [2, 10].map(Credits::whole_credits);
        let of = BurstableTerms::new(Ppm::new(200_000), Credits::whole_credits(60));
        BurstableTerms { initial, cap, ..of }
    }

    /// The computed balances from minute 0, with two credits, to minute `until`, as pairs of minutes and credits.
    fn points(hibernations: &[(u64, Option<u64>)], until: u64, spent: u64) -> Vec<(u64, u64)> {
        let minute = |n: u64| Time::from_secs(n * 60);
        let hibernations: Vec<_> = hibernations
            .iter()
            .map(|(from, to)| VmHibernation {
                asked: minute(*from),
                frozen: minute(*from),
                resumed: to.map(|to| (minute(to), minute(to))),
            })
            .collect();
        let begun = (Time::ZERO, Credits::whole_credits(2));
        let points = extrapolate(&hibernations, (begun, minute(until)), (&burstable(), spent));
        let whole = Credits::whole_credits(1).as_vcpu_micros();
        let in_minutes = |(at, credits): &Balance| {
            (at.as_micros() / 60_000_000, credits.as_vcpu_micros() / whole)
        };
        points.iter().map(in_minutes).collect()
    }

    #[test]
    fn an_idle_vm_earns_until_it_is_full_and_not_while_it_is_hibernated() {
        assert_eq!(points(&[], 5, 0), [(5, 7)]);
        assert_eq!(points(&[], 20, 0), [(8, 10), (20, 10)]);
        let slept = [(3, Some(6))];
        assert_eq!(points(&slept, 9, 0), [(3, 5), (6, 5), (9, 8)]);
        assert_eq!(points(&[(3, None)], 9, 0), [(3, 5), (9, 5)]);
        // One that was over before does not count.
        assert_eq!(points(&[(0, Some(0))], 5, 0), [(0, 2), (5, 7)]);
    }

    #[test]
    fn a_balance_after_the_end_or_over_all_time_is_drawn_nevertheless() {
        let begun = (Time::from_secs(600), Credits::whole_credits(2));
        let points = |until, spent| extrapolate(&[], (begun, until), (&burstable(), spent));
        assert_eq!(points(Time::from_secs(60), 0), [begun]);
        let (end, empty) = (Time::from_micros(u64::MAX), Credits::whole_credits(0));
        assert_eq!(points(end, u64::MAX), [(begun.0, empty), (end, empty)]);
    }

    #[test]
    fn a_busy_vm_spends_what_its_tasks_compute() {
        // Two bursting tasks spend two credits a minute, one in baseline mode a fifth.
        assert_eq!(points(&[], 1, 2_000_000), [(1, 1)]);
        assert_eq!(points(&[], 5, 2_000_000), [(2, 0), (5, 0)]);
        assert_eq!(points(&[], 5, 200_000), [(5, 6)]);
        assert_eq!(points(&[], 5, 1_000_000), [(5, 2)]);
    }
}
