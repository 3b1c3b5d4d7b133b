//! What is owed for a VM: the sum of its charged intervals.

use dormouse_units::{Money, Price, Span, Time};
use serde::{Deserialize, Serialize};

/// One interval of one VM at one price. The bill is the sum of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The first emulated instant that is charged.
    pub from: Time,
    /// The emulated instant up to which it is charged.
    pub until: Time,
    /// At what price.
    pub price: Price,
}

impl Charge {
    /// What the interval costs, to the microsecond (Burst-HADS, III-A: "charged for each period").
    #[must_use]
    pub fn cost(&self) -> Money {
        self.price.for_span(self.duration())
    }

    /// How long it lasted.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.until.since(self.from)
    }
}

/// The meter of one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    price: Price,
    running_since: Option<Time>,
    charges: Vec<Charge>,
}

impl Meter {
    /// A stopped meter at this price.
    #[must_use]
    pub const fn new(price: Price) -> Self {
        Self { price, running_since: None, charges: Vec::new() }
    }

    /// Charging begins, if it hadn't.
    pub fn start(&mut self, now: Time) {
        self.running_since.get_or_insert(now);
    }

    /// Charging ends, if it had begun.
    pub fn stop(&mut self, now: Time) {
        if let Some(from) = self.running_since.take() {
            self.charges.push(Charge { from, until: now.max(from), price: self.price });
        }
    }

    /// The closed intervals.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// What is owed up to `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        let open =
            self.running_since.map_or(Money::ZERO, |from| self.price.for_span(now.since(from)));
        self.charges.iter().map(Charge::cost).sum::<Money>() + open
    }
}
