//! Law of recorded lifetimes.

use dormouse_units::{RandomStream, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Lifetime, hours};

/// Lifetimes that were recorded: a draw gives each with the same probability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empirical {
    /// The recorded lifetimes, in any order; if there are none, VMs are never preempted.
    pub recorded: Vec<Span>,
}

impl Empirical {
    /// Recorded lifetimes that are no longer than `t`, in hours.
    fn lifetimes_until(&self, t: f64) -> impl Iterator<Item = f64> {
        self.recorded.iter().map(|life| hours(*life)).filter(move |life| *life <= t)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 100,000 lifetimes")]
    fn part_of(&self, sum: f64) -> f64 {
        sum / self.recorded.len().max(1) as f64
    }
}

impl Lifetime for Empirical {
    #[expect(clippy::cast_precision_loss, reason = "at most 100,000 lifetimes")]
    fn cdf(&self, hours: f64) -> f64 {
        self.part_of(self.lifetimes_until(hours).count() as f64)
    }

    fn quantile(&self, p: f64) -> f64 {
        let mut sorted = self.recorded.clone();
        sorted.sort_unstable();
        let found = (1_u32..).zip(sorted).find(|(n, _)| self.part_of(f64::from(*n)) >= p);
        found.map_or(f64::INFINITY, |(_, life)| hours(life))
    }

    fn density(&self, _: f64) -> Option<f64> {
        None
    }

    fn hours_lived(&self, hours: f64) -> f64 {
        self.part_of(self.lifetimes_until(hours).sum())
    }

    fn draw_lifetime(&self, chance: &mut RandomStream) -> Option<Span> {
        self.recorded.get(chance.draw_below(self.recorded.len())).copied()
    }
}
