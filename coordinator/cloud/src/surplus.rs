//! Surplus credits: credits that a burstable VM in unlimited mode spends beyond those it has earned, and pays for.

use dormouse_units::{Credits, Money, Price, Span, Time};

use crate::BurstableTerms;

/// Additional credits of the machine that emulates a VM in unlimited mode, so that the machine
/// never runs out; those that it uses are the VM's surplus. The overdraft is 33,333 vCPU-hours, 174
/// days of the largest burstable types; with a VM's own credits it is within the range that a
/// worker may report.
const OVERDRAFT: Credits = Credits::whole_credits(2_000_000);

/// Fine units in one vCPU-microsecond. Credits are counted in fine units, so that rates per hour and uses in parts per million are
/// whole numbers per microsecond and nothing is rounded.
const FINE: i128 = 3_600_000_000 * 1_000_000;

impl BurstableTerms {
    /// Credit terms of the machine that emulates a VM with these terms: with an overdraft
    /// (`OVERDRAFT`) in unlimited mode.
    #[must_use]
    pub fn of_machine(self) -> Self {
        match self.surplus {
            None => self,
            Some(_) => Self {
                initial: self.initial.min(self.cap) + OVERDRAFT,
                cap: self.cap + OVERDRAFT,
                ..self
            },
        }
    }

    /// Credits of a VM whose machine has `machine` credits; zero if the machine uses its overdraft.
    #[must_use]
    pub fn of_vm(self, machine: Credits) -> Credits {
        match self.surplus {
            None => machine,
            Some(_) => machine.saturating_sub(OVERDRAFT).min(self.cap),
        }
    }
}

/// Account of a burstable VM: its credits, or in unlimited mode its surplus. Earned credits pay back surplus
/// first. Surplus beyond a day's credits, the most that the VM can hold, is charged at once and
/// can't be paid back; the rest is charged when the VM stops, or changes to standard mode (EC2 user guide, unlimited mode).
#[derive(Clone, Debug)]
pub struct SurplusAccount {
    burstable: BurstableTerms,
    /// Price of a surplus vCPU-hour; zero before the VM's first change to unlimited mode.
    price: Price,
    is_unlimited: bool,
    /// CPU use by programs of which the VM's machine knows nothing, summed over the VM's vCPUs, in millionths of a vCPU; `None`: the
    /// machine knows all use, so that its reports count.
    declared: Option<u64>,
    now: SurplusBalance,
    /// The account at the machine's last report, and the reported credit balance in fine units (`FINE` are a vCPU-microsecond).
    then: (SurplusBalance, i128),
    /// Estimated credits earned minus credits spent since the last report, in fine units (`FINE` are a vCPU-microsecond).
    since: i128,
    until: Time,
    /// CPU use summed over the VM's vCPUs, in millionths of a vCPU; `None`: the VM is stopped and earns nothing.
    used: Option<u64>,
}

/// Credit balance and charged surplus credits of a VM, in fine units (`FINE` are a vCPU-microsecond).
#[derive(Clone, Copy, Debug)]
struct SurplusBalance {
    /// Credits of the VM less its surplus credits, in fine units (`FINE` are a vCPU-microsecond).
    balance: i128,
    /// Surplus credits of the VM that were charged, in fine units (`FINE` are a vCPU-microsecond).
    charged: i128,
}

impl SurplusAccount {
    /// The account of a VM launched now, in the mode of its type.
    #[must_use]
    pub fn open_account(now: Time, burstable: BurstableTerms) -> Self {
        let account = SurplusBalance {
            balance: fine_units(burstable.initial.min(burstable.cap)),
            charged: 0,
        };
        Self {
            burstable,
            price: burstable.surplus.unwrap_or_default(),
            is_unlimited: burstable.surplus.is_some(),
            declared: None,
            now: account,
            then: (account, fine_units(burstable.of_machine().initial)),
            since: 0,
            until: now,
            used: None,
        }
    }

    /// Sets the CPU use from now on, summed over the VM's vCPUs, in millionths of a vCPU; `None`: the VM is stopped.
    pub fn set_use(&mut self, now: Time, used: Option<u64>) {
        self.pass_time(now);
        self.used = used;
    }

    /// Sets what programs of which the VM's machine knows nothing use whenever the VM runs, summed over the VM's vCPUs, in millionths
    /// of a vCPU, and the price of a surplus vCPU-hour; `None`: standard mode. A change to standard mode charges all surplus.
    pub fn declare_use(&mut self, now: Time, declared: u64, price: Option<Price>) {
        self.pass_time(now);
        if price.is_none() {
            self.charge_all();
        }
        self.declared = Some(declared);
        self.is_unlimited = price.is_some();
        self.price = price.unwrap_or(self.price);
    }

    /// The use of the VM's vCPUs that was set by [`Self::declare_use`].
    #[must_use]
    pub const fn declared_use(&self) -> Option<u64> {
        self.declared
    }

    /// Whether the account, and not the VM's machine, has the VM's credits: in unlimited mode, and where use is declared.
    #[must_use]
    pub const fn has_balance(&self) -> bool {
        self.is_unlimited || self.declared.is_some()
    }

    /// Records the balance that the machine reports, overdraft included; this replaces the balance
    /// estimated since the last report. The report of a machine that does not know all use is ignored.
    pub fn record_balance(&mut self, now: Time, machine: Credits) {
        if self.declared.is_some() {
            return self.pass_time(now);
        }
        self.until = self.until.max(now);
        let (account, had) = self.then;
        self.now = account;
        self.settle_net(fine_units(machine) - had);
        (self.then, self.since) = ((self.now, fine_units(machine)), 0);
    }

    /// Credits of the VM; zero if the VM has a surplus.
    #[must_use]
    pub fn credits(&self) -> Credits {
        let vcpu_us = u64::try_from(self.now.balance / FINE).unwrap_or(0);
        Credits::from_vcpu_micros(vcpu_us)
    }

    /// Stops the VM, which charges all surplus. Returns the total charged so far.
    pub fn stop_account(&mut self, now: Time) -> (Credits, Money) {
        self.pass_time(now);
        self.used = None;
        self.charge_all();
        self.total_charged()
    }

    /// All surplus credits that were charged so far, and their price.
    #[must_use]
    pub fn total_charged(&self) -> (Credits, Money) {
        let vcpu_us = self.now.charged.unsigned_abs().div_ceil(FINE.unsigned_abs());
        let vcpu_us = u64::try_from(vcpu_us).unwrap_or(u64::MAX);
        (Credits::from_vcpu_micros(vcpu_us), self.price.for_span(Span::from_micros(vcpu_us)))
    }

    /// Charges all surplus that is not charged yet.
    fn charge_all(&mut self) {
        self.now.charged += (-self.now.balance).max(0);
        self.now.balance = self.now.balance.max(0);
        (self.then, self.since) = ((self.now, self.then.1 + self.since), 0);
    }

    fn pass_time(&mut self, now: Time) {
        let us = i128::from(now.since(self.until).as_micros());
        self.until = self.until.max(now);
        let Some(used) = self.used else { return };
        let earned = i128::from(self.burstable.earned_per_hour.as_vcpu_micros()) * 1_000_000;
        let spent = i128::from(used) * 3_600_000_000;
        // Its machine holds no more than it can.
        let most = fine_units(self.burstable.of_machine().cap) - self.then.1;
        self.since = (self.since + us * (earned - spent)).min(most);
        self.settle_net(us * (earned - spent));
    }

    /// Adds `net`, the earned less the spent credits in fine units (`FINE` are a vCPU-microsecond), to the balance, and charges the
    /// surplus beyond the cap. Without credits a VM in standard mode spends no more than it earns.
    fn settle_net(&mut self, net: i128) {
        let most = fine_units(self.burstable.cap);
        let balance = self.now.balance + net;
        if !self.is_unlimited {
            self.now.balance = balance.clamp(0, most);
            return;
        }
        self.now.charged += (-most - balance).max(0);
        self.now.balance = balance.clamp(-most, most);
    }
}

fn fine_units(credits: Credits) -> i128 {
    i128::from(credits.as_vcpu_micros()) * FINE
}

#[cfg(test)]
mod tests {
    use dormouse_units::Ppm;

    use super::*;

    /// A t3.large: 30 % of two vCPUs, 36 credits an hour, $.05 for a surplus vCPU-hour.
    fn t3_large() -> BurstableTerms {
        let price = Price::from_usd_per_hour(0.05);
        BurstableTerms {
            surplus: price,
            ..BurstableTerms::new(Ppm::new(300_000), Credits::whole_credits(36))
        }
    }

    fn hours(h: u64) -> Time {
        Time::from_secs(3_600 * h)
    }

    const BOTH: Option<u64> = Some(2_000_000);

    #[test]
    fn surplus_is_charged_by_the_vcpu_hour_when_the_vm_stops() {
        // The guide's figures: both vCPUs for 2 h spend 240 credits and 72 are earned: 168 credits
        // are 2.8 vCPU-hours.
        let mut account = SurplusAccount::open_account(hours(0), t3_large());
        account.set_use(hours(0), BOTH);
        let (credits, cost) = account.stop_account(hours(2));
        assert_eq!((credits, cost.as_usd()), (Credits::whole_credits(168), 0.14));
        // What is earned meanwhile pays back: 84 credits in 7/3 h.
        let mut account = SurplusAccount::open_account(hours(0), t3_large());
        account.set_use(hours(0), BOTH);
        account.set_use(hours(1), Some(0));
        assert_eq!(account.stop_account(hours(4)), (Credits::ZERO, Money::ZERO));
        // A VM that stands still earns nothing.
        let mut account = SurplusAccount::open_account(hours(0), t3_large());
        account.set_use(hours(0), BOTH);
        account.set_use(hours(1), None);
        assert_eq!(account.stop_account(hours(4)).0, Credits::whole_credits(84));
        // Its baseline costs nothing.
        let mut account = SurplusAccount::open_account(hours(0), t3_large());
        account.set_use(hours(0), Some(600_000));
        assert_eq!(account.stop_account(hours(100)), (Credits::ZERO, Money::ZERO));
    }

    #[test]
    fn surplus_beyond_a_day_s_credits_is_never_paid_back() {
        let mut account = SurplusAccount::open_account(hours(0), t3_large());
        account.set_use(hours(0), BOTH);
        // 84 credits an hour for 20 h: 1,680, of which 816 are beyond 864.
        account.set_use(hours(20), Some(0));
        // 24 h pay back 864, and as many again are held after 48 h.
        account.set_use(hours(68), BOTH);
        assert_eq!(account.stop_account(hours(68)).0, Credits::whole_credits(816));
        // In standard mode there is no surplus.
        let standard = BurstableTerms { surplus: None, ..t3_large() };
        let mut account = SurplusAccount::open_account(hours(0), standard);
        account.set_use(hours(0), BOTH);
        assert_eq!(account.stop_account(hours(20)), (Credits::ZERO, Money::ZERO));
    }

    #[test]
    fn a_change_to_standard_mode_charges_the_surplus_and_ends_it() {
        let price = t3_large().surplus;
        let mut account =
            SurplusAccount::open_account(hours(0), BurstableTerms { surplus: None, ..t3_large() });
        assert!(!account.has_balance());
        account.declare_use(hours(0), 2_000_000, price);
        account.set_use(hours(0), account.declared_use());
        // The machine knows nothing of this use.
        account.record_balance(hours(1), Credits::whole_credits(36));
        account.declare_use(hours(1), 2_000_000, None);
        assert_eq!(account.total_charged().0, Credits::whole_credits(84));
        // 72 credits are earned at rest in 2 h, and spent within an hour: no surplus.
        account.set_use(hours(1), Some(0));
        account.set_use(hours(3), BOTH);
        assert_eq!((account.has_balance(), account.credits()), (true, Credits::whole_credits(72)));
        account.set_use(hours(5), BOTH);
        assert_eq!((account.credits(), account.total_charged().1.as_usd()), (Credits::ZERO, 0.07));
        account.declare_use(hours(5), 2_000_000, price);
        let (credits, cost) = account.stop_account(hours(6));
        assert_eq!((credits, cost.as_usd()), (Credits::whole_credits(168), 0.14));
    }

    #[test]
    fn what_its_machine_says_is_what_it_has() {
        let burstable = t3_large();
        let machine = burstable.of_machine();
        assert_eq!(burstable.of_vm(machine.initial), Credits::ZERO);
        assert_eq!(burstable.of_vm(machine.cap), burstable.cap);
        let mut account = SurplusAccount::open_account(hours(0), burstable);
        account.set_use(hours(0), BOTH);
        // It has really used less than was thought.
        let less = |credits| machine.initial.saturating_sub(Credits::whole_credits(credits));
        account.record_balance(hours(1), less(80));
        assert_eq!(account.clone().stop_account(hours(1)).0, Credits::whole_credits(80));
        // However long it seemed to use both: 900 less are 36 more than it may draw, and for good.
        account.record_balance(hours(30), less(900));
        account.record_balance(hours(31), less(890));
        assert_eq!(account.stop_account(hours(31)).0, Credits::whole_credits(890));
        // What is heard after it stopped counts from there.
        account.record_balance(hours(40), less(896));
        assert_eq!(account.stop_account(hours(40)).0, Credits::whole_credits(896));
    }
}
