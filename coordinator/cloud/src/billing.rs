//! Charged times of a VM, and their prices.

use dormouse_units::{Bytes, Money, Price, Span, Time};
use serde::{Deserialize, Serialize};
use thin_vec::ThinVec;

use crate::{EndedBy, StoppedDisk, TariffName};

/// A charged interval of one VM at one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargedInterval {
    /// Instant at which charging began.
    pub from: Time,
    /// Instant at which charging ended.
    pub until: Time,
    /// Price charged over the interval, per hour.
    pub price: Price,
}

impl ChargedInterval {
    /// Cost of the interval to the microsecond (Burst-HADS, III-A: "charged for each period").
    #[must_use]
    pub fn cost(&self) -> Money {
        self.price.for_span(self.duration())
    }

    /// Length of the charged interval.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.until.since(self.from)
    }
}

/// Whether booting and hibernated VMs are charged, though their user can't use them (Burst-HADS, III-A: the boot is not
/// charged; the text does not mention hibernated VMs). [`BillingMeter`] applies these terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillingTerms {
    /// True if a VM's boot is charged, from its launch on.
    pub boot: bool,
    /// True if the time in hibernation is charged when the VM ends without resuming.
    pub frozen: bool,
    /// Terms for the disk of a VM while it is hibernated; `None`: the disk costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_disk: Option<StoppedDisk>,
}

impl BillingTerms {
    /// Hourly price of a hibernated VM's disk, given the VM's memory; zero if the disk costs nothing.
    #[must_use]
    pub fn disk_price(&self, memory: Bytes) -> Price {
        self.stopped_disk.map_or_else(Price::default, |disk| disk.hourly_price(memory))
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Meter of one VM's charged intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingMeter {
    price: Price,
    /// Bid of the VM's user, which limits the charged price; `None`: no limit.
    most: Option<Price>,
    /// True if the time in hibernation is charged when the VM ends without resuming.
    charges_frozen: bool,
    /// Hourly price of the VM's disk while the VM is hibernated.
    disk: Price,
    /// Duration of the completed hibernations.
    stopped: Span,
    running_since: Option<Time>,
    frozen_since: Option<Time>,
    charges: ThinVec<ChargedInterval>,
    ended: EndedBy,
}

impl BillingMeter {
    /// Starts a meter for a VM that is launched now at this price.
    #[must_use]
    pub fn start_at_launch(now: Time, price: Price, billing: BillingTerms) -> Self {
        let (running_since, charges) = (billing.boot.then_some(now), ThinVec::new());
        Self {
            price,
            most: None,
            charges_frozen: billing.frozen,
            disk: Price::default(),
            stopped: Span::ZERO,
            running_since,
            frozen_since: None,
            charges,
            ended: EndedBy::User,
        }
    }

    /// The meter of a VM with a bid: at most the bid is charged, also during a notice.
    #[must_use]
    pub fn at_most(self, bid: Option<Price>) -> Self {
        Self { most: bid, ..self }
    }

    /// The meter of a VM whose disk costs this much per hour while the VM is hibernated.
    #[must_use]
    pub fn with_stopped_disk(self, disk: Price) -> Self {
        Self { disk, ..self }
    }

    /// The VM's current price per hour, even if that exceeds the bid.
    #[must_use]
    pub const fn price(&self) -> Price {
        self.price
    }

    /// Starts charging, as the VM can be used, unless it has started before.
    pub fn start_charging(&mut self, now: Time) {
        self.end_stop(now);
        if self.running_since.is_none() {
            (self.running_since, self.ended) = (Some(now), EndedBy::User);
        }
    }

    /// Decides the billing of a hibernated VM: charging stops from now on and may start again. [`BillingMeter::end_charging`]
    /// charges the hibernation after all if [`BillingTerms::frozen`] is set and the VM never resumes.
    pub fn pause_charging(&mut self, now: Time) {
        self.close_interval(now, EndedBy::Provider);
        self.frozen_since = Some(now);
    }

    /// Stops charging for good, as the VM was ended by `by`.
    pub fn end_charging(&mut self, now: Time, by: EndedBy) {
        let unpaid = self.end_stop(now).filter(|_| self.charges_frozen);
        self.running_since = self.running_since.or(unpaid);
        self.close_interval(now, by);
    }

    /// Ends the present hibernation, if any; returns its beginning.
    fn end_stop(&mut self, now: Time) -> Option<Time> {
        let since = self.frozen_since.take()?;
        self.stopped += now.since(since);
        Some(since)
    }

    /// Charged price per hour: the VM's price, limited by its bid.
    #[must_use]
    pub fn charged_price(&self) -> Price {
        self.most.map_or(self.price, |most| self.price.min(most))
    }

    fn close_interval(&mut self, now: Time, by: EndedBy) {
        if let Some(from) = self.running_since.take() {
            self.charges.push(ChargedInterval {
                from,
                until: now.max(from),
                price: self.charged_price(),
            });
            self.ended = by;
        }
    }

    /// Sets the VM's hourly price from `now` on.
    pub fn change_price(&mut self, now: Time, price: Price) {
        if let Some(from) = self.running_since.filter(|from| *from < now && price != self.price) {
            self.charges.push(ChargedInterval { from, until: now, price: self.charged_price() });
            self.running_since = Some(now);
        }
        self.price = price;
    }

    /// Start of the present uninterrupted charging; `None`: the VM is not charged now.
    #[must_use]
    pub fn runs_since(&self) -> Option<Time> {
        let mut since = self.running_since?;
        // Where the price changed, charging went on.
        for charge in self.charges.iter().rev() {
            if charge.until != since {
                break;
            }
            since = charge.from;
        }
        Some(since)
    }

    /// Time at which charging first started; `None`: the VM was never charged.
    #[must_use]
    pub fn first_started(&self) -> Option<Time> {
        self.charges.first().map(|charge| charge.from).or(self.running_since)
    }

    /// The completed intervals in order of time.
    #[must_use]
    pub fn charges(&self) -> &[ChargedInterval] {
        &self.charges
    }

    /// Money owed for the completed intervals and hibernations.
    #[must_use]
    pub fn settled_cost(&self, tariff: TariffName) -> Money {
        tariff.tariff_rule().money_owed(&self.charges, self.ended) + self.disk_cost()
    }

    /// Money owed for the VM's disk in completed hibernations.
    #[must_use]
    pub fn disk_cost(&self) -> Money {
        self.disk.for_span(self.stopped)
    }

    /// Cost, by the second, of completed time that is not owed because the provider ended it within
    /// a period that is charged as a whole.
    #[must_use]
    pub fn forgone_cost(&self, tariff: TariffName) -> Money {
        tariff.tariff_rule().cost_forgone(&self.charges, self.ended)
    }

    /// Hourly price of the VM's disk now; zero unless the VM is hibernated.
    #[must_use]
    pub fn disk_price_now(&self) -> Price {
        self.frozen_since.map_or_else(Price::default, |_| self.disk)
    }

    /// Money owed up to `now`, as if the user ended a VM that is still charged at `now`.
    #[must_use]
    pub fn owed_at(&self, now: Time, tariff: TariffName) -> Money {
        let present = self.frozen_since.map_or(Span::ZERO, |since| now.since(since));
        let disk = self.disk.for_span(self.stopped + present);
        let used = match self.running_since {
            None => return tariff.tariff_rule().money_owed(&self.charges, self.ended) + disk,
            Some(from) => {
                let price = self.charged_price();
                let mut used = self.charges.clone();
                used.push(ChargedInterval { from, until: now.max(from), price });
                used
            }
        };
        tariff.tariff_rule().money_owed(&used, EndedBy::User) + disk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Charged intervals, in seconds, of a VM launched at 0, ready at 10, frozen at 30, resumed at
    /// 40, frozen at 50, resumed at 80 if `resumes_at_last`, and gone at 90.
    fn charged(billing: BillingTerms, resumes_at_last: bool) -> Vec<(u64, u64)> {
        let at = Time::from_secs;
        let mut meter =
            BillingMeter::start_at_launch(at(0), Price::from_nanos_per_hour(3_600), billing);
        meter.start_charging(at(10));
        meter.pause_charging(at(30));
        meter.start_charging(at(40));
        meter.pause_charging(at(50));
        if resumes_at_last {
            meter.start_charging(at(80));
        }
        meter.end_charging(at(90), EndedBy::User);
        let secs = |t: Time| t.as_micros() / 1_000_000;
        meter.charges().iter().map(|c| (secs(c.from), secs(c.until))).collect()
    }

    #[test]
    fn boot_and_frozen_time_are_charged_where_the_provider_says_so() {
        let (boot, frozen) = (true, true);
        let of =
            |boot, frozen| charged(BillingTerms { boot, frozen, ..BillingTerms::default() }, false);
        assert_eq!(of(false, false), [(10, 30), (40, 50)]);
        assert_eq!(of(boot, false), [(0, 30), (40, 50)]);
        assert_eq!(of(false, frozen), [(10, 30), (40, 50), (50, 90)]);
        let all = BillingTerms { boot, frozen, ..BillingTerms::default() };
        assert_eq!(charged(all, true), [(0, 30), (40, 50), (80, 90)]);
    }

    #[test]
    fn a_hibernated_vm_pays_for_its_disk_alone() {
        let at = |h: u64| Time::from_secs(3_600 * h);
        let (hour, disk) = (Price::from_nanos_per_hour(1_000), Price::from_nanos_per_hour(7));
        let owed = |meter: &BillingMeter, h| meter.owed_at(at(h), TariffName::Second).as_nanos();
        let mut meter = BillingMeter::start_at_launch(at(0), hour, BillingTerms::default())
            .with_stopped_disk(disk);
        meter.start_charging(at(1));
        meter.pause_charging(at(3));
        assert_eq!((owed(&meter, 3), owed(&meter, 5)), (2_000, 2_014));
        assert_eq!((meter.disk_cost(), meter.disk_price_now()), (Money::ZERO, disk));
        // The disk is charged until the VM runs again, and no longer.
        meter.start_charging(at(6));
        assert_eq!((owed(&meter, 7), meter.disk_cost().as_nanos()), (3_021, 21));
        assert_eq!(meter.disk_price_now(), Price::default());
        meter.pause_charging(at(8));
        meter.end_charging(at(18), EndedBy::User);
        assert_eq!(meter.settled_cost(TariffName::Second).as_nanos(), 4_000 + 7 * 13);
        assert_eq!(owed(&meter, 100), 4_091);
        // A use that is free, because the provider ended it within an hour, keeps its disk.
        let mut taken = BillingMeter::start_at_launch(at(0), hour, BillingTerms::default())
            .with_stopped_disk(disk);
        taken.start_charging(at(0));
        taken.pause_charging(Time::from_secs(60));
        taken.end_charging(Time::from_secs(60 + 7_200), EndedBy::Provider);
        assert_eq!(taken.settled_cost(TariffName::Ec2).as_nanos(), 14);
    }
}
