//! The charge for the disk of a stopped VM.

use dormouse_units::{Bytes, Money, Price};
use serde::{Deserialize, Serialize};

/// Hours of a month of 30 days, in which disks are priced.
const MONTH_HOURS: u128 = 30 * 24;

/// Terms for the disk that a hibernated VM keeps: it holds the VM's memory, and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedDisk {
    /// Size of the disk beyond the VM's memory.
    pub size: Bytes,
    /// Price of a GiB of disk for a month of 30 days.
    pub gib_month: Money,
}

impl StoppedDisk {
    /// Hourly price of the disk of a stopped VM with this memory, rounded down to a nano-dollar.
    #[must_use]
    pub fn hourly_price(&self, memory: Bytes) -> Price {
        let bytes = u128::from(memory.get()) + u128::from(self.size.get());
        let month = u128::try_from(self.gib_month.as_nanos()).unwrap_or(0);
        let nanos = bytes.saturating_mul(month) / (1 << 30) / MONTH_HOURS;
        Price::from_nanos_per_hour(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_costs_its_gibibytes_by_the_month_of_thirty_days() {
        let gib = |n: u64| Bytes::new(n << 30);
        let gp3 = StoppedDisk { size: gib(8), gib_month: Money::from_nanos(80_000_000) };
        // 30 GiB of memory and 8 GiB at $.08: $3.04 a month, $.00422222 an hour.
        assert_eq!(gp3.hourly_price(gib(30)), Price::from_nanos_per_hour(4_222_222));
        let dear = StoppedDisk { size: gib(720), gib_month: Money::from_nanos(1_000_000_000) };
        assert_eq!(dear.hourly_price(Bytes::ZERO), Price::from_nanos_per_hour(1_000_000_000));
        let free = StoppedDisk { gib_month: Money::ZERO, ..gp3 };
        assert_eq!(free.hourly_price(Bytes::new(u64::MAX)), Price::from_nanos_per_hour(0));
    }
}
