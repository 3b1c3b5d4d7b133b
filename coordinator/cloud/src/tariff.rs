//! Tariffs: the cost of a VM's charged intervals.

use dormouse_units::{Money, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ChargedInterval;

/// The side that ended a VM's charging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The user ended the charging of the VM: the VM was terminated, or the run ended.
    User,
    /// The provider ended the charging of the VM: the VM was preempted, hibernated or lost.
    Provider,
}

/// Rule for the money owed for a VM.
pub trait Tariff: std::fmt::Debug + Sync {
    /// Money owed for these intervals, in order of time. Intervals without a gap between them are
    /// one use of the VM, in which the price changed. All uses but the last were ended by the
    /// provider by hibernation; `ended` tells who ended the last use.
    fn money_owed(&self, used: &[ChargedInterval], ended: EndedBy) -> Money;

    /// Cost of time in these intervals, priced by the second, that the user does not owe because the provider ended the
    /// use.
    fn cost_forgone(&self, used: &[ChargedInterval], ended: EndedBy) -> Money;
}

/// Name of a tariff, the rule for the money owed for a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TariffName {
    /// Each interval is charged at the price that holds in it.
    #[default]
    Second,
    /// Every hour of a use is charged at the price at its beginning. A last, partial hour is free if the provider ends or
    /// hibernates the VM, and costs a whole hour if the user ends it.
    Hour,
    /// Every started hour is charged at the price at its beginning, whoever ends the VM.
    StartedHour,
    /// Amazon's tariff since 2018: every interval is charged at its price, and each use for at least a minute. A use that the
    /// provider ends within its first hour is free.
    Ec2,
    /// Google's tariff: every interval is charged at its price, and each use for at least a minute. A use that the provider ends
    /// within its first minute is free.
    Gce,
    /// Microsoft's tariff: every interval is charged at its price, whoever ends the VM, as under `second`.
    Azure,
}

impl TariffName {
    /// The rule of the tariff with this name.
    #[must_use]
    pub fn tariff_rule(self) -> &'static dyn Tariff {
        match self {
            Self::Second => &ByTheSecond,
            Self::Hour => &ByTheHour,
            Self::StartedHour => &ByTheStartedHour,
            Self::Ec2 => &BySecondsOfUse { least: MINUTE, free: HOUR },
            Self::Gce => &BySecondsOfUse { least: MINUTE, free: MINUTE },
            Self::Azure => &ByTheSecond,
        }
    }
}

/// Charges every interval at its price, to the microsecond (Burst-HADS, III-A).
#[derive(Clone, Copy, Debug)]
pub struct ByTheSecond;

impl Tariff for ByTheSecond {
    fn money_owed(&self, used: &[ChargedInterval], _: EndedBy) -> Money {
        used.iter().map(ChargedInterval::cost).sum()
    }

    fn cost_forgone(&self, _: &[ChargedInterval], _: EndedBy) -> Money {
        Money::ZERO
    }
}

/// Charges every hour of a use at the price at its beginning. A last, partial hour is free if the
/// provider ends the use, and costs a full hour if the user does (ACC, spot prices of 2011).
#[derive(Clone, Copy, Debug)]
pub struct ByTheHour;

const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(3_600);

impl Tariff for ByTheHour {
    fn money_owed(&self, used: &[ChargedInterval], ended: EndedBy) -> Money {
        split_uses(used, ended)
            .into_iter()
            .map(|(of_one, ended)| cost_of_hours(of_one, ended))
            .sum()
    }

    fn cost_forgone(&self, used: &[ChargedInterval], ended: EndedBy) -> Money {
        let taken = split_uses(used, ended).into_iter().filter(|(_, by)| *by == EndedBy::Provider);
        taken.map(|(of_one, _)| last_part(of_one)).sum()
    }
}

/// Charges every started hour of a use at the price at its beginning, like on-demand VMs in the
/// past.
#[derive(Clone, Copy, Debug)]
pub struct ByTheStartedHour;

impl Tariff for ByTheStartedHour {
    fn money_owed(&self, used: &[ChargedInterval], _: EndedBy) -> Money {
        split_uses(used, EndedBy::User)
            .into_iter()
            .map(|(of_one, _)| cost_of_hours(of_one, EndedBy::User))
            .sum()
    }

    fn cost_forgone(&self, _: &[ChargedInterval], _: EndedBy) -> Money {
        Money::ZERO
    }
}

/// Charges every interval at its price, and each use for at least the time `least`, at its last
/// price; a use that the provider ends within the time `free` is free. Amazon: User Guide for EC2,
/// "Billing for interrupted Spot Instances" (Linux), and "Per Second Billing" of its prices.
/// Google: Compute Engine's "Spot VMs", "Pricing", and "per-second billing". Microsoft's prices say
/// "by the second".
#[derive(Clone, Copy, Debug)]
pub struct BySecondsOfUse {
    /// Minimum charged time of a use.
    pub least: Span,
    /// Time within which a use is free if the provider ends it.
    pub free: Span,
}

impl BySecondsOfUse {
    /// True if this use of a VM costs nothing, given who ended it.
    fn is_free(&self, of_one: &[ChargedInterval], ended: EndedBy) -> bool {
        ended == EndedBy::Provider && use_length(of_one) < self.free
    }
}

impl Tariff for BySecondsOfUse {
    fn money_owed(&self, used: &[ChargedInterval], ended: EndedBy) -> Money {
        let owed =
            split_uses(used, ended).into_iter().filter(|(of_one, by)| !self.is_free(of_one, *by));
        let owed = owed.map(|(of_one, _)| {
            let last = of_one.last().map(|charge| charge.price).unwrap_or_default();
            let missing = match use_length(of_one) {
                Span::ZERO => Span::ZERO,
                length => self.least.saturating_sub(length),
            };
            of_one.iter().map(ChargedInterval::cost).sum::<Money>() + last.for_span(missing)
        });
        owed.sum()
    }

    fn cost_forgone(&self, used: &[ChargedInterval], ended: EndedBy) -> Money {
        let free =
            split_uses(used, ended).into_iter().filter(|(of_one, by)| self.is_free(of_one, *by));
        free.flat_map(|(of_one, _)| of_one).map(ChargedInterval::cost).sum()
    }
}

/// Time from the beginning of a use of a VM to its end; the use is charged in these intervals.
fn use_length(of_one: &[ChargedInterval]) -> Span {
    match of_one {
        [] => Span::ZERO,
        [first, .., last] => last.until.since(first.from),
        [one] => one.duration(),
    }
}

/// Splits intervals into uses (intervals without a gap between them), each with the side that ended it.
fn split_uses(used: &[ChargedInterval], ended: EndedBy) -> Vec<(&[ChargedInterval], EndedBy)> {
    let uses = used.chunk_by(|a, b| a.until == b.from);
    let mut uses: Vec<_> = uses.map(|of_one| (of_one, EndedBy::Provider)).collect();
    if let Some((_, by)) = uses.last_mut() {
        *by = ended;
    }
    uses
}

/// Cost, by the second, of the last, partial hour of a use of a VM.
fn last_part(used: &[ChargedInterval]) -> Money {
    let [first, .., last] = used else {
        return used.first().map_or(Money::ZERO, |one| one.price.for_span(rest_of(one.duration())));
    };
    let begins = last.until.as_micros() - rest_of(last.until.since(first.from)).as_micros();
    let of_one = |charge: &ChargedInterval| {
        let from = charge.from.max(Time::from_micros(begins));
        charge.price.for_span(charge.until.since(from))
    };
    used.iter().map(of_one).sum()
}

/// The part of a time beyond its whole hours.
const fn rest_of(of: Span) -> Span {
    Span::from_micros(of.as_micros() % HOUR.as_micros())
}

/// Cost of one use of a VM by whole hours; a last, partial hour is charged as a whole if the user
/// ended the use, and free if not.
fn cost_of_hours(used: &[ChargedInterval], ended: EndedBy) -> Money {
    let (mut owed, mut begins) = (Money::ZERO, used[0].from);
    let until = used[used.len() - 1].until;
    while begins < until {
        let is_full = until.since(begins) >= HOUR;
        let price = used.iter().find(|charge| begins < charge.until).map(|charge| charge.price);
        if is_full || ended == EndedBy::User {
            owed += price.unwrap_or_default().for_span(HOUR);
        }
        begins += HOUR;
    }
    owed
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_units::Price;

    fn charge(from_min: u64, until_min: u64, cents: u64) -> ChargedInterval {
        let at = |min| Time::from_secs(60 * min);
        let price = Price::from_nanos_per_hour(cents * 10_000_000);
        ChargedInterval { from: at(from_min), until: at(until_min), price }
    }

    fn cents(tariff: TariffName, used: &[ChargedInterval], ended: EndedBy) -> i64 {
        tariff.tariff_rule().money_owed(used, ended).as_nanos() / 10_000_000
    }

    #[test]
    fn an_hour_costs_the_price_at_its_beginning() {
        use EndedBy::{Provider, User};
        // 0:10 to 2:40, at 6, 12 and 24 cents; the price changes at 1:00 and 2:10, an hour's beginning.
        let used = [charge(10, 60, 6), charge(60, 130, 12), charge(130, 160, 24)];
        assert_eq!(cents(TariffName::Hour, &used, User), 6 + 12 + 24);
        assert_eq!(cents(TariffName::Hour, &used, Provider), 6 + 12);
        // To the second: 5 + 14 + 12 cents.
        for ended in [User, Provider] {
            assert_eq!(cents(TariffName::Second, &used, ended), 31);
        }
        // Whole hours have no last, partial one.
        let whole = [charge(10, 130, 6)];
        assert_eq!([User, Provider].map(|by| cents(TariffName::Hour, &whole, by)), [12, 12]);
        let none: [ChargedInterval; 0] = [];
        assert_eq!(
            [cents(TariffName::Hour, &none, User), cents(TariffName::Second, &none, User)],
            [0, 0]
        );
    }

    #[test]
    fn what_the_provider_ends_within_an_hour_it_forgoes() {
        let forgone = |used: &[ChargedInterval], ended| {
            let of = |tariff: TariffName| tariff.tariff_rule().cost_forgone(used, ended).as_nanos();
            assert_eq!(of(TariffName::Second), 0);
            of(TariffName::Hour) / 10_000_000
        };
        use EndedBy::{Provider, User};
        // Its last half hour, of which 20 minutes at 12 cents and 10 at 24.
        let used = [charge(10, 60, 6), charge(60, 150, 12), charge(150, 160, 24)];
        assert_eq!((forgone(&used, Provider), forgone(&used, User)), (4 + 4, 0));
        assert_eq!(forgone(&[charge(0, 90, 10)], Provider), 5);
        assert_eq!(forgone(&[charge(0, 120, 10)], Provider), 0, "whole hours");
        // A hibernation after an hour and a half, and an end after half an hour.
        let used = [charge(0, 90, 10), charge(200, 230, 20)];
        assert_eq!((forgone(&used, User), forgone(&used, Provider)), (5, 5 + 10));
    }

    /// cases/billing-ec2-today: a VM at $1.20 an hour costs nothing if it is preempted after 30
    /// minutes; it is charged if its user ends it after 50 minutes, or if it is preempted after 90
    /// minutes.
    #[test]
    fn amazon_takes_nothing_for_a_first_hour_that_it_ends() {
        use EndedBy::{Provider, User};
        let ec2 = |until, by| cents(TariffName::Ec2, &[charge(0, until, 120)], by);
        assert_eq!(ec2(30, Provider) + ec2(50, User), 100);
        assert_eq!(ec2(90, Provider), 180);
        assert_eq!(ec2(60, Provider), 120, "a whole hour");
        // The hour is that of the use, whatever its prices, and each use has one.
        let used = [charge(0, 40, 60), charge(40, 70, 120), charge(100, 130, 120)];
        assert_eq!(cents(TariffName::Ec2, &used, Provider), 40 + 60);
        assert_eq!(cents(TariffName::Ec2, &used, User), 40 + 60 + 60);
        let rule = TariffName::Ec2.tariff_rule();
        assert_eq!(rule.cost_forgone(&used, Provider).as_nanos() / 10_000_000, 60);
        assert_eq!(rule.cost_forgone(&used, User), Money::ZERO);
    }

    #[test]
    fn a_use_costs_a_minute_at_least() {
        use EndedBy::{Provider, User};
        let of = |tariff: TariffName, seconds, by| {
            // A dollar a second.
            let price = Price::from_nanos_per_hour(3_600 * 1_000_000_000);
            let charge =
                ChargedInterval { from: Time::ZERO, until: Time::from_secs(seconds), price };
            tariff.tariff_rule().money_owed(&[charge], by).as_nanos() / 1_000_000_000
        };
        for tariff in [TariffName::Ec2, TariffName::Gce] {
            assert_eq!([0, 1, 60, 61].map(|s| of(tariff, s, User)), [0, 60, 60, 61], "{tariff:?}");
        }
        assert_eq!([59, 60, 3_599].map(|s| of(TariffName::Gce, s, Provider)), [0, 60, 3_599]);
        assert_eq!([59, 60, 3_599].map(|s| of(TariffName::Ec2, s, Provider)), [0, 0, 0]);
        assert_eq!([1, 59].map(|s| of(TariffName::Azure, s, Provider)), [1, 59]);
    }

    #[test]
    fn a_hibernation_ends_an_hour_for_nothing_and_a_resume_begins_another() {
        let used = [charge(0, 90, 10), charge(200, 230, 20)];
        assert_eq!(cents(TariffName::Hour, &used, EndedBy::User), 10 + 20);
        assert_eq!(cents(TariffName::Hour, &used, EndedBy::Provider), 10);
        for ended in [EndedBy::User, EndedBy::Provider] {
            assert_eq!(cents(TariffName::StartedHour, &used, ended), 2 * 10 + 20);
        }
    }
}
