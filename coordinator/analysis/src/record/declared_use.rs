//! CPU credits of a VM whose use is declared by its policy, as its machine knows nothing of it.

use dormouse_cloud::BurstableTerms;
use dormouse_units::{Credits, Ppm, Span, Time};

use super::VmHistory;

/// Microseconds in an hour.
const HOUR: i128 = 3_600_000_000;

/// The credit balance of a VM over its life until `end`: a point at its launch, at each change of slope, and at `end`; linear between
/// two points. While the VM has a surplus its balance is zero, and what it earns pays the surplus back first.
pub(super) fn declared_balances(
    vm: &VmHistory,
    burstable: &BurstableTerms,
    end: Time,
) -> Vec<(Time, Credits)> {
    let cap = i128::from(burstable.cap.as_vcpu_micros());
    let mut is = i128::from(burstable.initial.as_vcpu_micros()).min(cap);
    let mut points = vec![(vm.launched, is)];
    for (from, until) in steady_intervals(vm, end) {
        let declared = vm.declared_uses.iter().rev().find(|(at, ..)| *at <= from);
        let (used, is_unlimited) = declared
            .map_or((Ppm::ZERO, burstable.surplus.is_some()), |(_, used, mode)| (*used, *mode));
        let least = if is_unlimited { -cap } else { 0 };
        is = is.max(least);
        let used = i128::from(used.get()) * i128::from(vm.vcpus);
        let earned = i128::from(burstable.earned_per_hour.as_vcpu_micros());
        let slope = if runs_at(vm, from) { earned - used * 3_600 } else { 0 };
        let then = is + slope * i128::from(until.since(from).as_micros()) / HOUR;
        // The shown balance bends where it is empty, and where it is full.
        for bound in [0, cap] {
            if (is < bound) != (then < bound) && is != bound && slope != 0 {
                let after = u64::try_from((bound - is) * HOUR / slope).unwrap_or(0);
                points.push((from + Span::from_micros(after), bound));
            }
        }
        is = then.clamp(least, cap);
        points.push((until, is));
    }
    points.dedup();
    let shown = |is: i128| Credits::from_vcpu_micros(u64::try_from(is).unwrap_or(0));
    points.into_iter().map(|(at, is)| (at, shown(is))).collect()
}

/// Intervals from the VM's launch until `end` within which neither its use nor its state changes.
fn steady_intervals(vm: &VmHistory, end: Time) -> Vec<(Time, Time)> {
    let hibernations = vm.hibernations.iter();
    let hibernations = hibernations.flat_map(|it| [Some(it.frozen), it.resumed.map(|(_, at)| at)]);
    let uses = vm.declared_uses.iter().map(|(at, ..)| *at);
    let changes = hibernations.chain([vm.ready]).flatten().chain(uses);
    let mut changes: Vec<Time> = changes.filter(|at| *at > vm.launched && *at < end).collect();
    changes.sort_unstable();
    changes.dedup();
    let from = std::iter::once(vm.launched).chain(changes.iter().copied());
    from.zip(changes.iter().copied().chain([end.max(vm.launched)])).collect()
}

/// Whether a VM runs from this time on.
fn runs_at(vm: &VmHistory, at: Time) -> bool {
    let is_frozen = vm
        .hibernations
        .iter()
        .any(|it| it.frozen <= at && it.resumed.is_none_or(|(_, resumed)| at < resumed));
    vm.ready.is_some_and(|ready| ready <= at) && !is_frozen
}
