//! Facts about a VM.

use std::{collections::BTreeMap, net::Ipv4Addr};

use crate::{MaintenanceEvent, UnixTime, VmPlace};

/// Facts about a VM that hold from its launch to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmFacts {
    /// Run and number of the VM, from which all its ids are derived.
    pub identity: String,
    /// EC2's id of the instance; `None`: it is derived from the identity.
    pub instance_id: Option<String>,
    /// EC2's id of the instance's image; `None`: it is derived from the identity.
    pub image_id: Option<String>,
    /// The instance type, without a zone.
    pub kind: String,
    /// The zone that the VM is in.
    pub place: VmPlace,
    /// The market in which the VM was bought.
    pub market: VmMarket,
    /// The time at which the VM was launched.
    pub launched: UnixTime,
    /// The VM's own address.
    pub address: Ipv4Addr,
    /// Tags that the owner put into the metadata: names and values.
    pub tags: BTreeMap<String, String>,
    /// User data that the owner gave the VM; `None`: none.
    pub user_data: Option<String>,
    /// Names of the instance's security groups at its launch; none: the default group is shown.
    pub security_groups: Vec<String>,
    /// Ways into and out of the VM, as EC2 describes them.
    pub access: InstanceAccess,
}

/// Ways into and out of an instance of EC2, as its metadata describe them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceAccess {
    /// The public address; `None`: the instance has none.
    pub public_address: Option<Ipv4Addr>,
    /// The key pair of the launch: its name, and its public key in OpenSSH's form; `None`: there was none.
    pub public_key: Option<(String, String)>,
    /// The role whose credentials programs on the instance have; `None`: none.
    pub role: Option<RoleCredentials>,
}

/// Credentials of an instance's role.
#[derive(Clone, PartialEq, Eq)]
pub struct RoleCredentials {
    /// Name of the role.
    pub name: String,
    /// ARN of the instance profile.
    pub profile: String,
    /// The access key.
    pub access_key: String,
    /// The secret of the access key.
    pub secret: String,
    /// The session token.
    pub token: String,
}

impl std::fmt::Debug for RoleCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleCredentials").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Address of the VM with this number in its run's network; addresses 0 to 3 of a network belong to
/// the provider.
#[must_use]
pub fn address_of_vm(vm: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | vm.wrapping_add(4) & 0x00ff_ffff)
}

/// Market in which a VM is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmMarket {
    /// On demand: a VM that is kept until its user ends it.
    OnDemand,
    /// Spot: the provider may preempt the VM.
    Spot,
}

/// Ways in which a provider takes back a spot VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakingAction {
    /// The VM is terminated.
    Terminate,
    /// The VM is stopped; its disk is kept.
    Stop,
    /// The VM is hibernated; its memory is kept.
    Hibernate,
}

impl TakingAction {
    /// EC2's word for the action.
    #[must_use]
    pub const fn ec2_word(self) -> &'static str {
        match self {
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Hibernate => "hibernate",
        }
    }
}

/// Notice of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptionNotice {
    /// The way in which the VM is taken back.
    pub taking: TakingAction,
    /// The time at which the VM is taken back.
    pub at: UnixTime,
}

/// Announcement of a provider to a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmAnnouncement {
    /// The VM will be interrupted: terminated, stopped or hibernated.
    Interruption(InterruptionNotice),
    /// The VM is likely to be interrupted; with the instant from which that is known.
    Rebalance(UnixTime),
    /// Maintenance of the VM's host is planned, or its state has changed.
    Maintenance(MaintenanceEvent),
    /// The instance has these security groups now, by their names.
    SecurityGroups(Vec<String>),
    /// The VM has resumed after a hibernation; earlier announcements are void.
    Resumed,
}

/// Rule for tokens (EC2's version 2 of the service).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenRule {
    /// Requests without a token are answered too, as in version 1.
    #[default]
    Optional,
    /// Requests without a token are refused.
    Required,
}

/// Settings of a VM's metadata service, made by its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Rule for tokens in EC2's dialect.
    pub tokens: TokenRule,
}

impl VmFacts {
    /// Hash of the VM's identity for one purpose, so that ids don't change from the VM's launch to its end.
    fn identity_bits(&self, purpose: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose.as_bytes()).update(b"\0").update(self.identity.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// An id in EC2's format: a prefix and 17 hexadecimal digits.
    pub(crate) fn ec2_id(&self, prefix: &str) -> String {
        let hex = blake3::Hash::from_bytes(self.identity_bits(prefix)).to_hex();
        format!("{prefix}-0{}", &hex[..16])
    }

    /// EC2's id of the instance, `i-` and 17 hexadecimal digits.
    #[must_use]
    pub fn instance_id(&self) -> String {
        self.instance_id.clone().unwrap_or_else(|| self.ec2_id("i"))
    }

    /// EC2's id of the image that the instance was launched from.
    pub(crate) fn image_id(&self) -> String {
        self.image_id.clone().unwrap_or_else(|| self.ec2_id("ami"))
    }

    /// Google's id of the instance: a positive number of up to 19 digits.
    pub(crate) fn google_id(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.identity_bits("google");
        u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> 1
    }

    /// An id in Azure's format: a random-style UUID.
    pub(crate) fn azure_uuid(&self, purpose: &str) -> String {
        let mut bits = self.identity_bits(purpose);
        bits[6] = bits[6] & 0x0f | 0x40;
        bits[8] = bits[8] & 0x3f | 0x80;
        let hex = blake3::Hash::from_bytes(bits).to_hex();
        let hex = hex.as_str();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
    }

    /// The hardware address of the VM's network interface: a locally administered one.
    pub(crate) fn mac_address(&self) -> String {
        let [a, b, c, d, e, ..] = self.identity_bits("mac");
        format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
    }

    /// EC2's name of the VM, made from the address: `ip-10-0-0-7`.
    pub(crate) fn name(&self) -> String {
        let [a, b, c, d] = self.address.octets();
        format!("ip-{a}-{b}-{c}-{d}")
    }

    /// The VM's name with EC2's domain.
    pub(crate) fn ec2_hostname(&self) -> String {
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

    /// Facts of a made-up spot VM, for tests; its times are in 2026.
    pub(crate) fn spot_facts() -> VmFacts {
        VmFacts {
            identity: "run/7".to_owned(),
            instance_id: None,
            image_id: None,
            kind: "c5.large".to_owned(),
            place: VmPlace::of_zone("us-east-1a"),
            market: VmMarket::Spot,
            launched: UnixTime::from_micros(1_780_000_000_000_000),
            address: Ipv4Addr::new(10, 0, 0, 7),
            tags: BTreeMap::new(),
            user_data: None,
            security_groups: Vec::new(),
            access: InstanceAccess::default(),
        }
    }

    /// A spot VM of the year 2026 with two tags and user data.
    pub(crate) fn tagged_facts() -> VmFacts {
        let tags = [("Name", "worker-7"), ("team", "weather")];
        let tags = tags.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let user_data = Some("#!/bin/sh\necho hello\n".to_owned());
        VmFacts { tags: tags.into(), user_data, ..spot_facts() }
    }

    #[test]
    fn ids_have_their_providers_form_and_stay() {
        let facts = spot_facts();
        let id = facts.instance_id();
        assert!(id.starts_with("i-0") && id.len() == 19, "{id}");
        assert_eq!(id, spot_facts().instance_id());
        assert_ne!(id, VmFacts { identity: "run/8".to_owned(), ..spot_facts() }.instance_id());
        let uuid = facts.azure_uuid("vm");
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(i64::try_from(facts.google_id()).is_ok());
    }

    #[test]
    fn names_are_made_of_the_address() {
        assert_eq!(spot_facts().ec2_hostname(), "ip-10-0-0-7.ec2.internal");
        let place = VmPlace::of_zone("eu-west-1b");
        assert_eq!(
            VmFacts { place, ..spot_facts() }.ec2_hostname(),
            "ip-10-0-0-7.eu-west-1.compute.internal"
        );
    }
}
