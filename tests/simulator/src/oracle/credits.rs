//! A second computation of the CPU credits of burstable VMs: a VM holds at most what it began with and earned while
//! not hibernated, and a surplus costs what its type says.

use std::collections::BTreeMap;

use dormouse_cloud::BurstableTerms;
use dormouse_model::{Effect, Event, Report, Setup, Step};
use dormouse_units::{Span, Time, VmId};

use super::Broken;
use crate::invariant::Invariant;

/// The times and rates of a burstable VM, from which its credits are computed, and the surplus it was charged.
#[derive(Debug)]
struct CreditBill {
    rates: BurstableTerms,
    vcpus: u64,
    launched: Time,
    /// Total time of past hibernations; the next field is the beginning of the present one.
    hibernated: Span,
    since: Option<Time>,
    /// Surplus credits that were charged.
    charged: u64,
}

impl CreditBill {
    /// Time until `at` in which the VM could earn and spend credits.
    fn awake(&self, at: Time) -> Span {
        let now = self.since.map_or(Span::ZERO, |since| at.since(since));
        at.since(self.launched).saturating_sub(self.hibernated + now)
    }

    /// The most credits that a VM in standard mode can hold at a time, if its reports may be late by `lateness`.
    fn most(&self, at: Time, lateness: Span) -> u64 {
        let awake = (self.awake(at) + lateness).as_micros();
        let hourly = u128::from(self.rates.earned_per_hour.as_vcpu_micros());
        let earned = hourly * u128::from(awake) / 3_600_000_000;
        let initial = self.rates.initial.as_vcpu_micros();
        let most = u64::try_from(earned).unwrap_or(u64::MAX).saturating_add(initial);
        most.min(self.rates.cap.as_vcpu_micros())
    }
}

/// Checks the credits of all VMs of a run, whose reports may be late by `lateness`; reports of lying workers are
/// skipped.
///
/// # Errors
///
/// A VM holds more credits than it can, or is charged the wrong price for its surplus.
pub fn credits(
    setup: &Setup,
    lateness: Span,
    steps: &[Step],
    is_lie: impl Fn(&Step) -> bool,
) -> Result<(), Broken> {
    let mut open = BTreeMap::<VmId, CreditBill>::new();
    for step in steps {
        let now = step.at;
        let is_stale = step.effects.contains(&Effect::Stale);
        if let Event::Machine { report: Report::Credits { vm, balance, as_of }, .. } = &step.event
            && let Some(bill) = open.get(vm)
            && bill.rates.surplus.is_none()
            && !is_stale
            && !is_lie(step)
        {
            let (held, most) =
                (balance.as_vcpu_micros(), bill.most(as_of.unwrap_or(now), lateness));
            if held > most + rounding(most) {
                return wrong(
                    step,
                    format!("{vm} holds {held} vCPU-µs of credits; {most} are most"),
                );
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, kind, vcpus, .. } => {
                    let kind = setup.catalogue.get(kind);
                    if let Some(rates) = kind.and_then(|kind| kind.burstable) {
                        let bill = CreditBill {
                            rates,
                            vcpus: u64::from(*vcpus),
                            launched: now,
                            hibernated: Span::ZERO,
                            since: None,
                            charged: 0,
                        };
                        open.insert(*vm, bill);
                    }
                }
                Effect::VmHibernated { vm, .. } => {
                    open.entry(*vm).and_modify(|bill| bill.since = Some(now));
                }
                Effect::VmResumed { vm, .. } => {
                    open.entry(*vm).and_modify(|bill| {
                        let since = bill.since.take().unwrap_or(now);
                        bill.hibernated += now.since(since);
                    });
                }
                Effect::SurplusCharged { vm, credits, cost } => {
                    let Some(bill) = open.get_mut(vm) else {
                        return wrong(step, format!("{vm} has a surplus and no credits"));
                    };
                    let Some(price) = bill.rates.surplus else {
                        return wrong(step, format!("{vm} is charged, and is in standard mode"));
                    };
                    let drawn = credits.as_vcpu_micros();
                    let owed = u128::from(price.as_nanos_per_hour()) * u128::from(drawn);
                    if i128::from(cost.as_nanos()) != (owed / 3_600_000_000).cast_signed() {
                        return wrong(step, format!("{vm} is charged {cost} for {credits}"));
                    }
                    let awake = (bill.awake(now) + lateness).as_micros();
                    let most = awake.saturating_mul(bill.vcpus);
                    if drawn > most || drawn < bill.charged {
                        return wrong(
                            step,
                            format!(
                                "{vm} drew {drawn} vCPU-µs beyond its credits; {} were charged before and it \
                                 can have drawn {most}",
                                bill.charged
                            ),
                        );
                    }
                    bill.charged = drawn;
                }
                Effect::VmEnded { vm, .. } => drop(open.remove(vm)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The error that can come from rates rounded to whole millionths.
const fn rounding(most: u64) -> u64 {
    1_000 + most / 100_000
}

fn wrong(step: &Step, what: String) -> Result<(), Broken> {
    Err((Invariant::Credits, format!("step {}: {what}", step.seq)))
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Credits, Ppm};

    use super::*;

    #[test]
    fn nothing_is_earned_in_a_hibernation_nor_beyond_the_cap() {
        let rates = BurstableTerms {
            initial: Credits::whole_credits(2),
            cap: Credits::whole_credits(10),
            ..BurstableTerms::new(Ppm::new(100_000), Credits::whole_credits(60))
        };
        let mut bill = CreditBill {
            rates,
            vcpus: 1,
            launched: Time::ZERO,
            hibernated: Span::from_secs(60),
            since: None,
            charged: 0,
        };
        let whole = |bill: &CreditBill, secs| {
            let most = bill.most(Time::from_secs(secs), Span::ZERO);
            most / Credits::whole_credits(1).as_vcpu_micros()
        };
        assert_eq!([60, 120, 180, 9_000].map(|secs| whole(&bill, secs)), [2, 3, 4, 10]);
        bill.since = Some(Time::from_secs(120));
        assert_eq!(whole(&bill, 9_000), 3);
    }
}
