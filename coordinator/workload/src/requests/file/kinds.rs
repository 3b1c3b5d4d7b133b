//! Instance types of the requests of a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_units::TypeName;

use super::rules::RequestRules;
use crate::requests::offer::{Offer, OfferRefusal, VmSize};

/// Bytes of a GiB.
pub(super) const GIB: f64 = 1_073_741_824.0;

/// Instance types chosen for the VMs of a file. Each type has a small number, so that a request needs little memory.
#[derive(Debug)]
pub(super) struct NumberedTypes {
    offer: Option<Arc<Offer>>,
    rules: RequestRules,
    /// Sizes of the file's VM types, as shares of the largest machine, by type name; empty if the file has no table
    /// of types.
    parts: BTreeMap<String, VmSize>,
    names: Vec<TypeName>,
    numbers: BTreeMap<TypeName, u32>,
}

impl NumberedTypes {
    pub(super) fn new(
        offer: Option<Arc<Offer>>,
        rules: RequestRules,
        parts: BTreeMap<String, VmSize>,
    ) -> Self {
        Self { offer, rules, parts, names: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The type with this number.
    pub(super) fn name(&self, number: u32) -> &TypeName {
        &self.names[number as usize]
    }

    fn number_of_type(&mut self, name: &TypeName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    /// The number of the type that the file calls `name`; `Ok(None)`: its size is known, and no sold type is large
    /// enough.
    ///
    /// # Errors
    ///
    /// There is no such type, or it is not sold in the market.
    pub(super) fn number_of_named(
        &mut self,
        name: &str,
        market: Market,
    ) -> Result<Option<u32>, OfferRefusal> {
        let mapped = self.rules.types_map.get(name);
        if mapped.is_none()
            && let (Some(part), Some(_)) = (self.parts.get(name), &self.offer)
        {
            let part = *part;
            return self.number_of_part(&part, market);
        }
        let called = mapped.map_or(name, TypeName::as_str);
        let kind = match &self.offer {
            Some(offer) => offer.find_sold(called, market)?.clone(),
            None if self.numbers.contains_key(called) => {
                return Ok(self.numbers.get(called).copied());
            }
            None if called.is_empty() => {
                return Err(OfferRefusal::new("its type is empty", "give a type in each row"));
            }
            None => TypeName::from(called),
        };
        Ok(Some(self.number_of_type(&kind)))
    }

    /// The number of the smallest type that holds a VM of this size, given in vCPUs and GiB; `Ok(None)`: no type is
    /// large enough. The two texts are the size as the file spells it.
    ///
    /// # Errors
    ///
    /// The user's map of types gives this size a type that is not sold.
    pub(super) fn number_of_sized(
        &mut self,
        (vcpus, memory): (&str, &str),
        size: &VmSize,
        market: Market,
    ) -> Result<Option<u32>, OfferRefusal> {
        let label = if memory.is_empty() { vcpus.to_owned() } else { format!("{vcpus}/{memory}") };
        if self.rules.types_map.contains_key(&label) {
            return self.number_of_named(&label, market);
        }
        let Some(offer) = &self.offer else {
            let memory = if memory.is_empty() { String::new() } else { format!(" {memory} GiB") };
            let name = TypeName::from(format!("{vcpus} vCPUs{memory}").as_str());
            return Ok(Some(self.number_of_type(&name)));
        };
        let kind = offer.smallest_type(size, market).cloned();
        Ok(kind.map(|kind| self.number_of_type(&kind)))
    }

    /// The number of the smallest type for a VM whose size is a fraction of the largest machine; `Ok(None)`: no type is
    /// large enough.
    ///
    /// # Errors
    ///
    /// The size of the largest machine is not given.
    pub(super) fn number_of_part(
        &mut self,
        part: &VmSize,
        market: Market,
    ) -> Result<Option<u32>, OfferRefusal> {
        let Some(offer) = &self.offer else {
            let of = part.vcpus.max(part.memory);
            let halves = (0_u32..20).take_while(|n| of <= 1.0 / f64::from(1_u32 << n)).last();
            let name = halves.map_or("over a machine".to_owned(), |halves| {
                format!("1/{} of a machine", 1_u32 << halves)
            });
            return Ok(Some(self.number_of_type(&TypeName::from(name.as_str()))));
        };
        let machine = largest_machine(&self.rules)?;
        let size =
            VmSize { vcpus: part.vcpus * machine.vcpus, memory: part.memory * machine.memory };
        let kind = offer.smallest_type(&size, market).cloned();
        Ok(kind.map(|kind| self.number_of_type(&kind)))
    }
}

/// Size of the largest machine; the file gives sizes of VMs as fractions of it.
pub(super) fn largest_machine(rules: &RequestRules) -> Result<VmSize, OfferRefusal> {
    match (rules.machine_vcpus, rules.machine_memory) {
        #[expect(clippy::cast_precision_loss, reason = "memory of a machine")]
        (Some(vcpus), Some(memory)) => {
            Ok(VmSize { vcpus: f64::from(vcpus), memory: memory.get() as f64 })
        }
        _ => Err(OfferRefusal::new(
            "its sizes are shares of the largest machine, whose size is not given",
            "give its size, such as machine-vcpus = 64 and machine-memory = \"256 GiB\"",
        )),
    }
}
