//! Spot prices that are others in each run.

use std::collections::BTreeMap;

use dormouse_cloud::{DrawnStart, GeneratedPrices, PriceTrace};
use dormouse_units::TypeName;
use serde::{Deserialize, Serialize};

/// Spot prices that each run draws by its seed, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DrawnPrices {
    /// Those that are drawn themselves.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<TypeName, GeneratedPrices>,
    /// Those that were recorded: where the run begins is drawn.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<TypeName, DrawnStart>,
}

impl DrawnPrices {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.generated.is_empty() && self.recorded.is_empty()
    }

    /// Those of a run of this seed.
    pub fn draw(&self, seed: u64) -> impl Iterator<Item = (TypeName, PriceTrace)> {
        let generated =
            self.generated.iter().map(move |(kind, of)| (kind.clone(), of.trace(kind, seed)));
        let recorded = self.recorded.iter().map(move |(kind, of)| (kind.clone(), of.trace(seed)));
        generated.chain(recorded)
    }
}
