//! Catalogue of a provider: instance types, prices, limits.

use std::collections::BTreeMap;

use dormouse_units::{Bytes, Credits, Ppm, Price, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ResourceVector;

/// How a VM is bought.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Market {
    /// A spot VM: cheap, but the provider may interrupt or end it.
    Spot,
    /// An on-demand VM: it exists until its user ends it.
    OnDemand,
}

impl std::fmt::Display for Market {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        })
    }
}

/// How a burstable type earns and spends CPU credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Burstable")]
pub struct BurstableTerms {
    /// Share of a vCPU that each vCPU may use in baseline mode.
    pub baseline: Ppm,
    /// CPU credits that the whole VM earns per hour.
    pub earned_per_hour: Credits,
    /// CPU credits that a VM has at its launch.
    pub initial: Credits,
    /// Greatest number of CPU credits that a VM can hold.
    pub cap: Credits,
    /// Price of a vCPU-hour beyond what the VM has earned, in unlimited mode. A type without this price is in standard mode: a VM
    /// without credits then runs at its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surplus: Option<Price>,
}

impl BurstableTerms {
    /// A burstable type that starts without credits and holds at most those of a day, like T3.
    #[must_use]
    pub fn new(baseline: Ppm, earned_per_hour: Credits) -> Self {
        let day = earned_per_hour.as_vcpu_micros().saturating_mul(24);
        let cap = Credits::from_vcpu_micros(day);
        Self { baseline, earned_per_hour, initial: Credits::ZERO, cap, surplus: None }
    }
}

/// Most VMs of one type at a time, per market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
pub struct VmLimits {
    /// Most spot VMs of the type at a time.
    pub spot: u32,
    /// Most on-demand VMs of the type at a time.
    pub on_demand: u32,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceType {
    /// The name of the type.
    pub name: TypeName,
    /// Number of virtual processors.
    pub vcpus: u32,
    /// Memory of the VM.
    pub memory: Bytes,
    /// Disk that a VM of the type takes of its host; zero: none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub disk: Bytes,
    /// Computing power of the VM in mega-flops (LINPACK), for Burst-HADS Eq. 7.
    pub mflops: u64,
    /// Price in the on-demand market, if offered there.
    pub on_demand: Option<Price>,
    /// Price in the spot market, if offered there.
    pub spot: Option<Price>,
    /// Most VMs of the type at a time, per market.
    pub limits: VmLimits,
    /// Rules for CPU credits of a burstable type; other types have none.
    pub burstable: Option<BurstableTerms>,
}

fn is_none(disk: &Bytes) -> bool {
    *disk == Bytes::ZERO
}

impl InstanceType {
    /// Room that a VM of this type takes on its host, without the memory that its processes fill.
    #[must_use]
    pub const fn room(&self) -> ResourceVector {
        ResourceVector {
            vcpus: self.vcpus,
            memory: self.memory,
            disk: self.disk,
            filled: Bytes::ZERO,
        }
    }

    /// Price in a market; `None` if the type is not sold there.
    #[must_use]
    pub fn price(&self, market: Market) -> Option<Price> {
        match market {
            Market::Spot => self.spot,
            Market::OnDemand => self.on_demand,
        }
    }

    /// Bid of a VM without a bid of its own: `part` of the type's on-demand price; `None`:
    /// unlimited.
    #[must_use]
    pub fn default_bid(&self, market: Market, part: Option<Ppm>) -> Option<Price> {
        let whole = self.on_demand.filter(|_| market == Market::Spot)?;
        Some(whole.part(part?))
    }

    /// Greatest number of VMs of this type in a market at a time; zero if it isn't sold there.
    #[must_use]
    pub fn vm_limit(&self, market: Market) -> u32 {
        match market {
            _ if self.price(market).is_none() => 0,
            Market::Spot => self.limits.spot,
            Market::OnDemand => self.limits.on_demand,
        }
    }
}

/// Instance types by name.
pub type Types = BTreeMap<TypeName, InstanceType>;

/// Everything a provider offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Catalogue {
    /// The instance types by name.
    pub types: Types,
    /// Time from the request for a VM until the VM is usable. Charging starts when the VM is usable (Burst-HADS, III-A), or at its
    /// launch if the provider's billing terms charge the boot.
    pub boot: Span,
    /// Least time from a hibernation until the VM can be resumed.
    pub hibernation: Span,
}

impl Catalogue {
    /// The instance type of this name; `None` if the catalogue lacks it.
    #[must_use]
    pub fn get(&self, name: &TypeName) -> Option<&InstanceType> {
        self.types.get(name)
    }

    /// Names of all types as text for messages.
    #[must_use]
    pub fn list_names(&self) -> String {
        self.types.keys().map(TypeName::as_str).collect::<Vec<_>>().join(", ")
    }
}
