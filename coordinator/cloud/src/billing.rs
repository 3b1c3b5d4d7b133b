//! For how long a VM is charged, and at what price.

use dormouse_units::{Money, Price, Span, Time};
use serde::{Deserialize, Serialize};

use crate::{EndedBy, TariffName};

/// One interval of one VM at one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// When charging began.
    pub from: Time,
    /// When it ended.
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
    ended: EndedBy,
}

impl Meter {
    /// A stopped meter at this price.
    #[must_use]
    pub const fn new(price: Price) -> Self {
        Self { price, running_since: None, charges: Vec::new(), ended: EndedBy::User }
    }

    /// The price now.
    #[must_use]
    pub const fn price(&self) -> Price {
        self.price
    }

    /// Charging begins, if it hadn't.
    pub fn start(&mut self, now: Time) {
        if self.running_since.is_none() {
            (self.running_since, self.ended) = (Some(now), EndedBy::User);
        }
    }

    /// Charging ends, if it had begun, and who ended it.
    pub fn stop(&mut self, now: Time, by: EndedBy) {
        if let Some(from) = self.running_since.take() {
            self.charges.push(Charge { from, until: now.max(from), price: self.price });
            self.ended = by;
        }
    }

    /// The price is another from now on.
    pub fn reprice(&mut self, now: Time, price: Price) {
        if let Some(from) = self.running_since.filter(|from| *from < now && price != self.price) {
            self.charges.push(Charge { from, until: now, price: self.price });
            self.running_since = Some(now);
        }
        self.price = price;
    }

    /// When charging began for the first time.
    #[must_use]
    pub fn first_started(&self) -> Option<Time> {
        self.charges.first().map(|charge| charge.from).or(self.running_since)
    }

    /// The closed intervals.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// What is owed for the closed intervals.
    #[must_use]
    pub fn settled(&self, tariff: TariffName) -> Money {
        tariff.rule().owed(&self.charges, self.ended)
    }

    /// What is owed up to `now`: were its user to end it then, if charging goes on.
    #[must_use]
    pub fn owed(&self, now: Time, tariff: TariffName) -> Money {
        let Some(from) = self.running_since else { return self.settled(tariff) };
        let mut used = self.charges.clone();
        used.push(Charge { from, until: now.max(from), price: self.price });
        tariff.rule().owed(&used, EndedBy::User)
    }
}
