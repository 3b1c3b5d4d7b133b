//! Cost to the provider of ending a VM.

use dormouse_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the cost of ending a spot VM is computed, when VMs have to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostName {
    /// The cost is the time since the VM's current charged hour began, which is not charged if the provider ends the VM.
    #[default]
    Period,
    /// The cost is the whole time since charging for the VM began: work that its user may have to repeat.
    Age,
    /// The cost is the same for every VM, so that the fewest VMs end.
    Number,
}

/// Cost of ending one or more VMs, as a linear function of time: `slope × time − offset`, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinearCost {
    /// Number of VMs whose cost grows with time.
    pub(super) slope: i64,
    pub(super) offset: i64,
    /// Time until which this linear function is the cost; `None`: for ever.
    pub(super) until: Option<Time>,
}

const HOUR: u64 = Span::from_secs(3_600).as_micros();

/// Microseconds as a signed number: enough for 290,000 years.
pub(super) fn signed_micros(time: Time) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl CostName {
    /// True if the cost of ending a VM, computed this way, grows with time.
    pub(super) fn grows_with_time(self) -> bool {
        self != Self::Number
    }

    /// Cost in microseconds of ending, at `now`, a VM charged since `since` (`None`: not charged); 1 under the rule by
    /// which every VM costs the same.
    #[must_use]
    pub fn ending_cost(self, since: Option<Time>, now: Time) -> u64 {
        let age = since.map_or(0, |since| now.since(since).as_micros());
        match self {
            Self::Period => age % HOUR,
            Self::Age => age,
            Self::Number => 1,
        }
    }

    /// Cost of ending a VM charged since `since`, as a linear function of time from `now` on.
    pub(super) fn cost_line(self, since: Option<Time>, now: Time) -> LinearCost {
        let steady = |cost: i64| LinearCost { slope: 0, offset: -cost, until: None };
        let Some(since) = since else { return steady(i64::from(!self.grows_with_time())) };
        match self {
            Self::Number => steady(1),
            Self::Age => LinearCost { slope: 1, offset: signed_micros(since), until: None },
            Self::Period => {
                let hours = now.since(since).as_micros() / HOUR;
                let began = since + Span::from_micros(hours * HOUR);
                let until = Some(began + Span::from_micros(HOUR));
                LinearCost { slope: 1, offset: signed_micros(began), until }
            }
        }
    }
}

impl LinearCost {
    /// Sum of two linear costs; it holds as long as both costs hold.
    pub(super) fn add_line(&self, other: &Self) -> Self {
        Self {
            slope: self.slope + other.slope,
            offset: self.offset + other.offset,
            until: Time::sooner_of(self.until, other.until),
        }
    }
}
