//! Facts about a VM.

use std::{collections::BTreeMap, net::Ipv4Addr};

use crate::{MaintenanceEvent, Place, UnixTime};

/// Facts about a VM that hold from its launch to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The run and the number of the VM in it: all ids of the VM are made of these.
    pub identity: String,
    /// The instance type, without a zone.
    pub kind: String,
    /// The zone that the VM is in.
    pub place: Place,
    /// The market in which the VM was bought.
    pub market: Market,
    /// The time at which the VM was launched.
    pub launched: UnixTime,
    /// The VM's own address.
    pub address: Ipv4Addr,
    /// The tags of the VM, which its owner has put into its metadata: names and values.
    pub tags: BTreeMap<String, String>,
    /// The text that the owner has given the VM along; `None`: none.
    pub user_data: Option<String>,
}

/// The address of the VM of this number in the network of its run: addresses 0 to 3 of a network are its provider's.
#[must_use]
pub fn address_of_vm(vm: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | vm.wrapping_add(4) & 0x00ff_ffff)
}

/// On what terms a VM is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Market {
    /// Kept until its user ends it.
    OnDemand,
    /// May be taken away.
    Spot,
}

/// The ways in which a provider takes back a spot VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// End it for good.
    Terminate,
    /// Stop it: its disk is kept.
    Stop,
    /// Freeze it: its memory is kept.
    Hibernate,
}

impl Taking {
    /// EC2's word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Hibernate => "hibernate",
        }
    }
}

/// The notice of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The way in which the VM is taken back.
    pub taking: Taking,
    /// The time at which the VM is taken back.
    pub at: UnixTime,
}

/// An announcement of a provider to a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The VM is going to be taken.
    Interruption(Interruption),
    /// The VM is likely to be taken, as is known from this instant on.
    Rebalance(UnixTime),
    /// Maintenance of the VM's host is planned, or what has become of it.
    Maintenance(MaintenanceEvent),
    /// The VM is in use again after a hibernation: what was announced before is over.
    Resumed,
}

/// Whether requests need a token (EC2's version 2 of the service).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokens {
    /// Requests without a token are answered as well, as version 1 does.
    #[default]
    Optional,
    /// Requests without a token are refused.
    Required,
}

/// Settings of a VM's metadata service that its owner has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether requests of EC2's dialect need a token.
    pub tokens: Tokens,
}

impl Facts {
    /// Bits that are drawn from the VM's identity for one purpose, so that ids don't change while a VM lives.
    fn bits(&self, purpose: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose.as_bytes()).update(b"\0").update(self.identity.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// An id as EC2 makes them: a prefix and 17 hexadecimal digits.
    pub(crate) fn ec2_id(&self, prefix: &str) -> String {
        let hex = blake3::Hash::from_bytes(self.bits(prefix)).to_hex();
        format!("{prefix}-0{}", &hex[..16])
    }

    /// EC2's id of the instance, `i-` and 17 hexadecimal digits.
    #[must_use]
    pub fn instance_id(&self) -> String {
        self.ec2_id("i")
    }

    /// Google's id of the instance: a positive number of up to 19 digits.
    pub(crate) fn number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.bits("google");
        u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> 1
    }

    /// An id as Azure makes them: a UUID of the random kind.
    pub(crate) fn uuid(&self, purpose: &str) -> String {
        let mut bits = self.bits(purpose);
        bits[6] = bits[6] & 0x0f | 0x40;
        bits[8] = bits[8] & 0x3f | 0x80;
        let hex = blake3::Hash::from_bytes(bits).to_hex();
        let hex = hex.as_str();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
    }

    /// The hardware address of the VM's network interface: a locally administered one.
    pub(crate) fn mac(&self) -> String {
        let [a, b, c, d, e, ..] = self.bits("mac");
        format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
    }

    /// The VM's name, as EC2 makes it of the address: `ip-10-0-0-7`.
    pub(crate) fn name(&self) -> String {
        let [a, b, c, d] = self.address.octets();
        format!("ip-{a}-{b}-{c}-{d}")
    }

    /// The VM's name with EC2's domain.
    pub(crate) fn hostname(&self) -> String {
        let region = &self.place.region;
        let name = self.name();
        match region.as_str() {
            "us-east-1" => format!("{name}.ec2.internal"),
            _ => format!("{name}.{region}.compute.internal"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A spot VM of the year 2026.
    pub(crate) fn spot() -> Facts {
        Facts {
            identity: "run/7".to_owned(),
            kind: "c5.large".to_owned(),
            place: Place::of_zone("us-east-1a"),
            market: Market::Spot,
            launched: UnixTime::from_micros(1_780_000_000_000_000),
            address: Ipv4Addr::new(10, 0, 0, 7),
            tags: BTreeMap::new(),
            user_data: None,
        }
    }

    /// The same VM with two tags and user data.
    pub(crate) fn tagged() -> Facts {
        let tags = [("Name", "worker-7"), ("team", "weather")];
        let tags = tags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let user_data = Some("#!/bin/sh\necho hello\n".to_owned());
        Facts { tags: tags.into(), user_data, ..spot() }
    }

    #[test]
    fn ids_have_their_providers_form_and_stay() {
        let facts = spot();
        let id = facts.instance_id();
        assert!(id.starts_with("i-0") && id.len() == 19, "{id}");
        assert_eq!(id, spot().instance_id());
        assert_ne!(id, Facts { identity: "run/8".to_owned(), ..spot() }.instance_id());
        let uuid = facts.uuid("vm");
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(i64::try_from(facts.number()).is_ok());
    }

    #[test]
    fn names_are_made_of_the_address() {
        assert_eq!(spot().hostname(), "ip-10-0-0-7.ec2.internal");
        let place = Place::of_zone("eu-west-1b");
        assert_eq!(Facts { place, ..spot() }.hostname(), "ip-10-0-0-7.eu-west-1.compute.internal");
    }
}
