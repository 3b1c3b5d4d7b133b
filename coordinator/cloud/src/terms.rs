//! How a provider deals with what it offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::TypeName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Billing, Listed, Placement, PriceTrace, Prices, Recorded, TariffName};

/// Which places of its hosts' processors a provider sells as spot VMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpotPlaces {
    /// Those of which other VMs have as many: a VM has its processors for itself.
    #[default]
    Own,
    /// The background of all processors: a spot VM has what the VM in the foreground leaves.
    Background,
}

impl SpotPlaces {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// The rules of a provider beside its catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// On which host a VM goes.
    #[serde(default)]
    pub placement: Placement,
    /// Where its spot VMs are.
    #[serde(default, skip_serializing_if = "SpotPlaces::is_own")]
    pub spot: SpotPlaces,
    /// What its intervals cost.
    #[serde(default)]
    pub tariff: TariffName,
    /// Whether VMs are charged for more than the time in which they can be used.
    #[serde(default, skip_serializing_if = "Billing::is_default")]
    pub billing: Billing,
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
