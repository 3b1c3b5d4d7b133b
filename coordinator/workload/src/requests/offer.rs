//! Offers: the instance types that can be requested of a provider.

use std::collections::BTreeMap;

use dormouse_cloud::{InstanceType, Market, PlacementRule, ResourceVector, Types};
use dormouse_documents::instead;
use dormouse_units::{Bytes, TypeName};

/// Reason why requests for VMs, or settings of a source of requests, are refused, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct OfferRefusal {
    /// What is wrong with the refused request or setting, in words.
    pub what: String,
    /// What the user should do about the refusal, in words.
    pub remedy: String,
}

impl OfferRefusal {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// Instance types of a provider, with the markets in which each can be had, considering sales and
/// room on the hosts.
#[derive(Clone, Debug)]
pub struct Offer {
    types: BTreeMap<TypeName, SoldMarkets>,
    /// Sizes of all types, smallest first; among equal sizes only the cheapest.
    sizes: Vec<(VmSize, TypeName)>,
}

/// vCPUs and memory of a VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VmSize {
    /// Number of vCPUs, which is fractional where a trace gives shares of a machine.
    pub vcpus: f64,
    /// Memory in bytes.
    pub memory: f64,
}

impl VmSize {
    /// True if a VM of this size has at least the vCPUs and memory of `other`, but for rounding errors.
    fn can_hold(&self, other: &Self) -> bool {
        const ROUNDING: f64 = 1e-9;
        self.vcpus * (1.0 + ROUNDING) >= other.vcpus
            && self.memory * (1.0 + ROUNDING) >= other.memory
    }
}

/// For each market, the reason why VMs of a type can't be requested in it; `None`: they can.
#[derive(Clone, Debug)]
struct SoldMarkets {
    spot: Option<OfferRefusal>,
    on_demand: Option<OfferRefusal>,
}

impl Offer {
    /// The offer of a provider with these instance types and these hosts; without hosts there is room for all types.
    #[must_use]
    pub fn new(types: &Types, hosts: &[ResourceVector], rule: &PlacementRule) -> Self {
        let mut kinds: Vec<&ResourceVector> = hosts.iter().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let sold = |kind: &InstanceType| {
            let room = rule.room_of(kind, Bytes::ZERO, false);
            let fits = kinds.is_empty() || kinds.iter().any(|host| host.holds(&room));
            let refusal = |market| match kind.price(market) {
                _ if !fits => Some(OfferRefusal::new(
                    format!("a VM of {} takes {room}, more than any host has", kind.name),
                    "request a smaller type, or add a larger host to cloud.hosts",
                )),
                None => Some(OfferRefusal::new(
                    format!("{} is not sold in the {market} market", kind.name),
                    "request it in the other market, or give the type a price in this one",
                )),
                Some(_) => None,
            };
            SoldMarkets { spot: refusal(Market::Spot), on_demand: refusal(Market::OnDemand) }
        };
        let mut sizes: Vec<&InstanceType> = types.values().collect();
        sizes.sort_by_key(|kind| {
            (kind.vcpus, kind.memory, kind.on_demand.or(kind.spot), &kind.name)
        });
        #[expect(clippy::cast_precision_loss, reason = "memory of a VM")]
        let size = |kind: &InstanceType| VmSize {
            vcpus: f64::from(kind.vcpus),
            memory: kind.memory.get() as f64,
        };
        let sizes = sizes.into_iter().map(|kind| (size(kind), kind.name.clone())).collect();
        let types = types.values().map(|kind| (kind.name.clone(), sold(kind)));
        Self { types: types.collect(), sizes }
    }

    /// The smallest type that holds a VM of this size, of those that may be requested in `market`:
    /// with the fewest vCPUs, then the least memory, then the lowest price; `None`: there is none.
    #[must_use]
    pub fn smallest_type(&self, size: &VmSize, market: Market) -> Option<&TypeName> {
        let mut holding = self.sizes.iter().filter(|(held, _)| held.can_hold(size));
        holding.find_map(|(_, name)| self.find_sold(name.as_str(), market).ok())
    }

    /// The type of this name.
    ///
    /// # Errors
    ///
    /// There is no such type.
    pub fn find_type(&self, name: &str) -> Result<&TypeName, OfferRefusal> {
        self.find_entry(name).map(|(kind, _)| kind)
    }

    /// The type of this name, if VMs of it may be requested in `market`.
    ///
    /// # Errors
    ///
    /// There is no such type, it is not sold in the market, or no host has room for it.
    pub fn find_sold(&self, name: &str, market: Market) -> Result<&TypeName, OfferRefusal> {
        let (kind, sold) = self.find_entry(name)?;
        let refusal = match market {
            Market::Spot => &sold.spot,
            Market::OnDemand => &sold.on_demand,
        };
        refusal.clone().map_or(Ok(kind), Err)
    }

    fn find_entry(&self, name: &str) -> Result<(&TypeName, &SoldMarkets), OfferRefusal> {
        self.types.get_key_value(name).ok_or_else(|| {
            let all: Vec<_> = self.types.keys().map(TypeName::as_str).collect();
            OfferRefusal::new(format!("there is no instance type '{name}'"), instead(name, &all))
        })
    }
}
