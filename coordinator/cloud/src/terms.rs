//! How a provider deals with what it offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::TypeName;
use serde::{Deserialize, Serialize};

use crate::{Listed, PlacerName, PriceTrace, Prices, Recorded, TariffName};

/// The rules of a provider beside its catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// On which host a VM goes.
    #[serde(default)]
    pub placement: PlacerName,
    /// What its intervals cost.
    #[serde(default)]
    pub tariff: TariffName,
    /// The spot prices of types whose price changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<TypeName, PriceTrace>,
}

impl Terms {
    /// Whether they are those of a run that says nothing of them.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What VMs cost.
    #[must_use]
    pub fn prices(&self) -> Arc<dyn Prices> {
        if self.prices.is_empty() {
            Arc::new(Listed)
        } else {
            Arc::new(Recorded(self.prices.clone()))
        }
    }
}
