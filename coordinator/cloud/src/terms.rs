//! Terms of a provider: placement, preemption, billing and prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::{Ppm, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BillingTerms, ListedPrices, Placement, PriceTrace, Prices, RebalanceRule, RecordedSpotPrices,
    SpotAvailability, TariffName,
};

/// Shares of its hosts' processors that a provider sells as spot VMs: whole processors, or their background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpotPlaces {
    /// Spot VMs get whole processors, as other VMs do: each VM has its processors to itself.
    #[default]
    Own,
    /// Spot VMs run in the background of processors: a spot VM gets what the VM in the foreground leaves.
    Background,
}

impl SpotPlaces {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// Treatment of a spot VM whose room an on-demand VM gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Preemption")]
pub enum PreemptionAction {
    /// The spot VM is given notice and ends when the notice has run out, even if the on-demand VM ends before. A spot
    /// VM that ends earlier frees its room at once.
    #[default]
    Terminate,
    /// The spot VM hibernates at once. Its vCPUs and memory go to the on-demand VM as soon as it is frozen; it keeps its disk. It
    /// resumes once its host has room for it again: on-demand VMs may get that room before it, but no other spot VM does. A spot VM
    /// that is still booting ends instead; one that is hibernating, hibernated or about to resume makes no room.
    Hibernate,
}

impl PreemptionAction {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_terminate(&self) -> bool {
        *self == Self::Terminate
    }
}

/// The rules of a provider beside its catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTerms {
    /// Rule by which the host of a VM is chosen.
    #[serde(default)]
    pub placement: Placement,
    /// Shares of the hosts' processors that are sold as spot VMs.
    #[serde(default, skip_serializing_if = "SpotPlaces::is_own")]
    pub spot: SpotPlaces,
    /// Treatment of spot VMs whose room an on-demand VM gets.
    #[serde(default, skip_serializing_if = "PreemptionAction::is_terminate")]
    pub preemption: PreemptionAction,
    /// Tariff for the charged intervals of a VM.
    #[serde(default)]
    pub tariff: TariffName,
    /// Whether VMs are charged for time in which they can't be used.
    #[serde(default, skip_serializing_if = "BillingTerms::is_default")]
    pub billing: BillingTerms,
    /// Default bid of spot VMs, as a fraction of the on-demand price; `None`: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_bid: Option<Ppm>,
    /// Time between a recommendation to replace a VM and a foreseeable interruption; `None`: no
    /// recommendations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance_lead: Option<Span>,
    /// Detailed rule for recommendations, in place of `rebalance_lead`; `None`: `rebalance_lead` alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance: Option<RebalanceRule>,
    /// The spot prices of types whose price changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<TypeName, PriceTrace>,
    /// Limits of spot VMs of scarce types; other types are unlimited.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub availability: BTreeMap<TypeName, SpotAvailability>,
}

impl ProviderTerms {
    /// True if these are the default terms.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Rule for recommendations under these terms.
    #[must_use]
    pub fn rebalance_rule(&self) -> RebalanceRule {
        self.rebalance.unwrap_or_else(|| RebalanceRule::exactly_before(self.rebalance_lead))
    }

    /// Prices of VMs under these terms.
    #[must_use]
    pub fn price_source(&self) -> Arc<dyn Prices> {
        if self.prices.is_empty() {
            Arc::new(ListedPrices)
        } else {
            Arc::new(RecordedSpotPrices(self.prices.clone()))
        }
    }
}
