//! Spot prices that differ from run to run.

use std::collections::BTreeMap;

use dormouse_cloud::{DrawnStart, GeneratedPrices, PriceTrace};
use dormouse_units::TypeName;
use serde::{Deserialize, Serialize};

/// Spot prices that each run draws with its seed, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DrawnPrices {
    /// Prices that are drawn from a model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<TypeName, GeneratedPrices>,
    /// Recorded prices, in which the beginning of the run is drawn.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<TypeName, DrawnStart>,
}

impl DrawnPrices {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.generated.is_empty() && self.recorded.is_empty()
    }

    /// The prices of a run with this seed.
    pub fn draw(&self, seed: u64) -> impl Iterator<Item = (TypeName, PriceTrace)> {
        let generated =
            self.generated.iter().map(move |(kind, of)| (kind.clone(), of.draw_trace(kind, seed)));
        let recorded =
            self.recorded.iter().map(move |(kind, of)| (kind.clone(), of.draw_trace(seed)));
        generated.chain(recorded)
    }
}
