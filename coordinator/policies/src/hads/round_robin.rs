//! Weighted round-robin over instance types (Burst-HADS Eq. 7).

use dormouse_cloud::Market;

use crate::problem::{KindId, SchedulingProblem};

/// Hands out types in proportion to Gflops / price. In each turn the value of every type grows by its
/// weight; the type with the greatest value is next, and its value falls by the sum of all weights. So
/// types of great weight are not handed out many times in a row.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    market: Market,
    entries: Vec<WeightedType>,
}

/// An instance type with its state in the round-robin: weight, current value, and number of VMs
/// left.
#[derive(Clone, Debug)]
struct WeightedType {
    kind: KindId,
    weight: i128,
    current: i128,
    left: u32,
}

impl RoundRobin {
    /// A round-robin over the regular types of a market, each up to its limit.
    pub(crate) fn new(problem: &SchedulingProblem, market: Market) -> Self {
        let entries = problem
            .regular_types(market)
            .map(|(id, kind)| {
                let price = kind.price(market).map_or(0, |p| p.as_nanos_per_hour()).max(1);
                // Mega-flops per nano-dollar, scaled so that the division loses nothing that counts.
                let weight = i128::from(kind.mflops) * 1_000_000_000_000 / i128::from(price);
                WeightedType {
                    kind: id,
                    weight: weight.max(1),
                    current: 0,
                    left: kind.limit(market),
                }
            })
            .collect();
        Self { market, entries }
    }

    /// The market whose types are handed out.
    pub(crate) fn market(&self) -> Market {
        self.market
    }

    /// The types in the order in which the round-robin would hand them out from now on.
    pub(crate) fn candidate_types(&self) -> Vec<KindId> {
        let mut order: Vec<_> = self.entries.iter().filter(|e| e.left > 0).collect();
        order.sort_by_key(|e| (std::cmp::Reverse(e.current + e.weight), e.kind));
        order.iter().map(|e| e.kind).collect()
    }

    /// Counts a VM of this type as chosen.
    pub(crate) fn take_type(&mut self, kind: KindId) {
        let total: i128 = self.entries.iter().filter(|e| e.left > 0).map(|e| e.weight).sum();
        for entry in self.entries.iter_mut().filter(|e| e.left > 0) {
            entry.current += entry.weight;
            if entry.kind == kind {
                entry.current -= total;
                entry.left -= 1;
            }
        }
    }
}
