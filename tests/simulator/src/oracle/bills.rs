//! A second computation of what every VM costs, from the log alone: its times of readiness, hibernation, resumption
//! and end, and the prices. It shares no code with the provider that it checks.

use std::collections::BTreeMap;

use dormouse_cloud::{BillingTerms, Market, TariffName};
use dormouse_model::{Effect, Setup, Step, VmEnd};
use dormouse_units::{TypeName, VmId};

use super::Broken;
use crate::invariant::Invariant;

/// Microseconds of a minute; the next constant is those of an hour.
const MINUTE: u64 = 60_000_000;
const HOUR: u64 = 3_600_000_000;

/// Microseconds of emulated time.
type Micros = u64;
/// Nano-dollars for an hour.
type HourlyPrice = u64;

/// A part of a use of a VM in which the price stayed the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: Micros,
    until: Micros,
    price: HourlyPrice,
}

/// A time in which a VM could be used without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct VmUse {
    pieces: Vec<Piece>,
    /// Whether the provider ended the use.
    is_taken: bool,
}

impl VmUse {
    fn begins(&self) -> Micros {
        self.pieces.first().map_or(0, |piece| piece.from)
    }

    fn ends(&self) -> Micros {
        self.pieces.last().map_or(0, |piece| piece.until)
    }

    /// The price at a time within the use.
    fn price_at(&self, at: Micros) -> HourlyPrice {
        self.pieces.iter().find(|piece| at < piece.until).map_or(0, |piece| piece.price)
    }

    /// The cost of the use, in nano-dollars: each piece at its own price.
    fn by_time(&self) -> u64 {
        self.pieces.iter().map(|piece| cost(piece.price, piece.until - piece.from)).sum()
    }
}

/// The cost of a time at a price, in nano-dollars, rounded down.
fn cost(price: HourlyPrice, lasts: Micros) -> u64 {
    u64::try_from(u128::from(price) * u128::from(lasts) / u128::from(HOUR)).unwrap_or(u64::MAX)
}

/// The cost of these uses under a tariff, in nano-dollars.
fn owed(tariff: TariffName, uses: &[VmUse]) -> u64 {
    let of_one = |used: &VmUse| match tariff {
        TariffName::Second | TariffName::Azure => used.by_time(),
        TariffName::Ec2 => by_use(used, HOUR),
        TariffName::Gce => by_use(used, MINUTE),
        TariffName::Hour => by_hour(used, used.is_taken),
        TariffName::StartedHour => by_hour(used, false),
    };
    uses.iter().map(of_one).sum()
}

/// The cost of a use billed by time, at least a minute; 0 if the provider ended the use within its first `free`
/// microseconds.
fn by_use(used: &VmUse, free: Micros) -> u64 {
    let lasts = used.ends() - used.begins();
    if lasts == 0 || used.is_taken && lasts < free {
        return 0;
    }
    let last_price = used.pieces.last().map_or(0, |piece| piece.price);
    used.by_time() + cost(last_price, MINUTE.saturating_sub(lasts))
}

/// The cost of a use billed by the hour, each hour at the price at its beginning; a last hour that is cut short is
/// free if `is_part_free`.
fn by_hour(used: &VmUse, is_part_free: bool) -> u64 {
    let (mut begins, mut sum) = (used.begins(), 0);
    while begins < used.ends() {
        if begins + HOUR <= used.ends() || !is_part_free {
            sum += used.price_at(begins);
        }
        begins += HOUR;
    }
    sum
}

/// The running bill of a VM that has not ended.
#[derive(Debug)]
struct VmBill {
    /// The type of a spot VM, whose price follows the market; `None` for an on-demand VM.
    spot: Option<TypeName>,
    bid: Option<HourlyPrice>,
    price: HourlyPrice,
    uses: Vec<VmUse>,
    /// Since when the VM is used at the present price; `None` if it is not in use.
    since: Option<Micros>,
    hibernated: Option<Micros>,
    /// Nano-dollars for an hour of the VM's disk in hibernation.
    disk: HourlyPrice,
    /// Time that the VM was hibernated and could not be used, in completed hibernations.
    stopped: Micros,
    surcharge: u64,
}

/// The price of a hibernated VM's disk: gibibytes of memory and disk, by the month of 720 hours.
fn disk_price(billing: BillingTerms, memory: u64) -> HourlyPrice {
    let Some(disk) = billing.stopped_disk else { return 0 };
    let bytes = u128::from(memory) + u128::from(disk.size.get());
    let month = u128::try_from(disk.gib_month.as_nanos()).unwrap_or(0) * bytes;
    u64::try_from(month / (720 * (1 << 30))).unwrap_or(u64::MAX)
}

impl VmBill {
    fn charged(&self) -> HourlyPrice {
        self.bid.map_or(self.price, |bid| bid.min(self.price))
    }

    /// Begins a use, unless the VM is in use already.
    fn begin(&mut self, now: Micros) {
        self.stopped += self.hibernated.take().map_or(0, |since| now - since);
        if self.since.is_none() {
            self.since = Some(now);
            // What follows a use without a gap is a part of it.
            if self.uses.last().is_none_or(|last| last.ends() < now) {
                self.uses.push(VmUse::default());
            }
        }
    }

    /// Ends the piece of the use that has the present price.
    fn cut(&mut self, now: Micros) {
        let price = self.charged();
        if let (Some(from), Some(last)) = (self.since.take(), self.uses.last_mut()) {
            last.pieces.push(Piece { from, until: now, price });
        }
    }

    /// Ends the use.
    fn end(&mut self, now: Micros, is_taken: bool) {
        if self.since.is_none() {
            return;
        }
        self.cut(now);
        if let Some(last) = self.uses.last_mut() {
            last.is_taken = is_taken;
        }
    }

    /// Changes the price from now on.
    fn reprice(&mut self, now: Micros, price: HourlyPrice) {
        if self.since.is_some_and(|since| since < now) && price != self.price {
            self.cut(now);
            self.since = Some(now);
        }
        self.price = price;
    }

    /// Ends the bill of a VM that is gone; returns its whole cost.
    fn settle(
        mut self,
        now: Micros,
        is_taken: bool,
        billing: BillingTerms,
        tariff: TariffName,
    ) -> u64 {
        // One that never resumed is charged for its hibernation by a provider that does so.
        if let Some(since) = self.hibernated {
            self.stopped += now - since;
            self.hibernated = None;
            if billing.frozen {
                self.begin(since);
                self.since = Some(since);
            }
        }
        self.end(now, is_taken);
        owed(tariff, &self.uses) + cost(self.disk, self.stopped) + self.surcharge
    }
}

/// Compares the cost of each VM in the log of a run with a second computation.
///
/// # Errors
///
/// The two costs of a VM differ.
pub fn bills(setup: &Setup, steps: &[Step]) -> Result<(), Broken> {
    let terms = &setup.terms;
    let types = &setup.catalogue.types;
    let memory_of = |kind: &TypeName| types.get(kind).map_or(0, |kind| kind.memory.get());
    let mut open = BTreeMap::<VmId, VmBill>::new();
    for step in steps {
        let now = step.at.as_micros();
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, kind, market, price, bid, .. } => {
                    let mut bill = VmBill {
                        spot: (*market == Market::Spot).then(|| kind.clone()),
                        bid: bid.map(|bid| bid.as_nanos_per_hour()),
                        price: price.as_nanos_per_hour(),
                        uses: Vec::new(),
                        since: None,
                        hibernated: None,
                        disk: disk_price(terms.billing, memory_of(kind)),
                        stopped: 0,
                        surcharge: 0,
                    };
                    if terms.billing.boot {
                        bill.begin(now);
                    }
                    open.insert(*vm, bill);
                }
                Effect::VmReady { vm } | Effect::VmResumed { vm, .. } => {
                    open.entry(*vm).and_modify(|bill| bill.begin(now));
                }
                Effect::VmHibernated { vm, .. } => {
                    open.entry(*vm).and_modify(|bill| {
                        bill.end(now, true);
                        bill.hibernated = Some(now);
                    });
                }
                Effect::PriceChanged { kind, price } => {
                    let price = price.as_nanos_per_hour();
                    let of_type = open.values_mut().filter(|bill| bill.spot.as_ref() == Some(kind));
                    of_type.for_each(|bill| bill.reprice(now, price));
                }
                Effect::SurplusCharged { vm, cost, .. } => {
                    let nanos = u64::try_from(cost.as_nanos()).unwrap_or(0);
                    open.entry(*vm).and_modify(|bill| bill.surcharge = nanos);
                }
                Effect::VmEnded { vm, why, cost } => {
                    let Some(bill) = open.remove(vm) else {
                        return differs(step, format!("{vm} ends, and was never launched"));
                    };
                    let is_taken = match why {
                        VmEnd::Terminated | VmEnd::RunOver | VmEnd::WorkDone => false,
                        VmEnd::Preempted | VmEnd::HostLost | VmEnd::Failed => true,
                    };
                    let used = format!("{:?} since {:?}", bill.uses, bill.since);
                    let owed = bill.settle(now, is_taken, terms.billing, terms.tariff);
                    if i64::try_from(owed) != Ok(cost.as_nanos()) {
                        let (tariff, paid) = (terms.tariff, cost.as_nanos());
                        return differs(
                            step,
                            format!(
                                "{vm} costs {paid} nano-dollars; by {tariff:?} its uses cost {owed}: {used}"
                            ),
                        );
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn differs(step: &Step, what: String) -> Result<(), Broken> {
    Err((Invariant::Bills, format!("step {}: {what}", step.seq)))
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::StoppedDisk;
    use dormouse_units::{Bytes, Money};

    use super::*;

    fn used(pieces: &[(u64, u64, u64)], is_taken: bool) -> VmUse {
        let piece = |&(from, until, price)| Piece {
            from: from * MINUTE,
            until: until * MINUTE,
            price: price * 1_000,
        };
        VmUse { pieces: pieces.iter().map(piece).collect(), is_taken }
    }

    /// Each tariff charges what its provider's page says: for 30 and 90 minutes at a price of 60, and for a use whose
    /// price changes.
    #[test]
    fn each_tariff_charges_what_its_provider_says() {
        let all = |used: VmUse| {
            use TariffName::{Azure, Ec2, Gce, Hour, Second, StartedHour};
            [Second, Azure, Ec2, Gce, Hour, StartedHour]
                .map(|of| owed(of, std::slice::from_ref(&used)) / 1_000)
        };
        assert_eq!(all(used(&[(0, 30, 60)], false)), [30, 30, 30, 30, 60, 60]);
        assert_eq!(all(used(&[(0, 30, 60)], true)), [30, 30, 0, 30, 0, 60]);
        assert_eq!(all(used(&[(0, 90, 60)], true)), [90, 90, 90, 90, 60, 120]);
        // The price changes after 20 minutes, and 70: the second hour is at that of its beginning.
        let changing = &[(10, 30, 60), (30, 80, 120), (80, 100, 240)];
        assert_eq!(all(used(changing, false)), [200, 200, 200, 200, 60 + 120, 60 + 120]);
        assert_eq!(all(VmUse::default()), [0; 6]);
    }

    #[test]
    fn a_use_costs_a_minute_at_least_where_the_provider_says_so() {
        let half = |is_taken| VmUse {
            pieces: vec![Piece { from: 0, until: MINUTE / 2, price: 120_000 }],
            is_taken,
        };
        let of = |tariff, is_taken| owed(tariff, &[half(is_taken)]);
        assert_eq!(of(TariffName::Ec2, false), 2_000);
        assert_eq!(of(TariffName::Gce, false), 2_000);
        assert_eq!(of(TariffName::Second, false), 1_000);
        assert_eq!((of(TariffName::Ec2, true), of(TariffName::Gce, true)), (0, 0));
    }

    #[test]
    fn a_hibernation_ends_a_use_and_is_charged_where_it_never_ends() {
        let bill = || VmBill {
            spot: None,
            bid: Some(30),
            price: 60,
            uses: Vec::new(),
            since: None,
            hibernated: None,
            disk: 5,
            stopped: 0,
            surcharge: 7,
        };
        let settled = |resumes: bool, frozen: bool| {
            let mut bill = bill();
            bill.begin(0);
            bill.end(HOUR, true);
            bill.hibernated = Some(HOUR);
            if resumes {
                bill.begin(3 * HOUR);
            }
            let billing = BillingTerms { frozen, ..BillingTerms::default() };
            bill.settle(4 * HOUR, false, billing, TariffName::Second)
        };
        // The disk costs 5 an hour, for the 2 hours until the VM resumes or the 3 until it ends.
        assert_eq!(settled(true, true), 30 + 30 + 10 + 7);
        assert_eq!(settled(true, false), 30 + 30 + 10 + 7);
        assert_eq!(settled(false, false), 30 + 15 + 7);
        assert_eq!(settled(false, true), 30 + 90 + 15 + 7);
    }

    #[test]
    fn a_disk_is_priced_by_its_gibibytes_and_the_month() {
        let gib_month = Money::from_nanos(80_000_000);
        let stopped_disk = Some(StoppedDisk { size: Bytes::new(8 << 30), gib_month });
        let billing = BillingTerms { stopped_disk, ..BillingTerms::default() };
        assert_eq!(disk_price(billing, 30 << 30), 4_222_222);
        assert_eq!(disk_price(BillingTerms::default(), 30 << 30), 0);
    }
}
