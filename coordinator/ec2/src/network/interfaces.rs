//! Network interfaces: each instance has one, which comes and goes with it.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::{Ec2Instance, InstanceAddresses};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::region::not_found;
use crate::resource_tags::tags_to_wire;

const FILTERS: [&str; 16] = [
    "network-interface-id",
    "attachment.instance-id",
    "attachment.status",
    "attachment.device-index",
    "availability-zone",
    "group-id",
    "group-name",
    "owner-id",
    "private-ip-address",
    "addresses.private-ip-address",
    "private-dns-name",
    "status",
    "subnet-id",
    "vpc-id",
    "tag-key",
    "tag-value",
];

impl Ec2Instance {
    /// The id of the instance's interface.
    pub(crate) fn interface_id(&self) -> String {
        format!("eni-{}", self.id.trim_start_matches("i-"))
    }

    fn attachment_id(&self) -> String {
        format!("eni-attach-{}", self.id.trim_start_matches("i-"))
    }
}

impl ApiDesk {
    /// The network interface of an instance as an element of DescribeInstances' answer.
    pub(crate) fn instance_interface(
        &self,
        it: &Ec2Instance,
        at: &InstanceAddresses,
    ) -> Option<WireValue> {
        let attachment = WireValue::structure()
            .with("AttachmentId", it.attachment_id())
            .with("AttachTime", self.instant(it.created))
            .with("DeleteOnTermination", true)
            .with("DeviceIndex", 0_i64)
            .with("Status", "attached");
        Some(self.interface_to_wire(it, at)?.with("Attachment", attachment))
    }

    fn interface_to_wire(&self, it: &Ec2Instance, at: &InstanceAddresses) -> Option<WireValue> {
        let seat = it.seat.as_ref()?;
        let groups = self
            .groups_of(it)
            .into_iter()
            .map(|(id, name)| WireValue::structure().with("GroupId", id).with("GroupName", name));
        let public = at.public.as_ref().map(|(address, name)| {
            WireValue::structure()
                .with("PublicIp", address.as_str())
                .with("PublicDnsName", name.as_str())
                .with("IpOwnerId", "amazon")
        });
        let (private, name) = (at.private_ip.as_str(), at.private_name.as_str());
        let first = WireValue::structure()
            .with("Primary", true)
            .with("PrivateIpAddress", private)
            .with("PrivateDnsName", name)
            .with_some("Association", public.clone());
        Some(
            WireValue::structure()
                .with("NetworkInterfaceId", it.interface_id())
                .with("OwnerId", account_number(&it.scope.account))
                .with("Status", "in-use")
                .with("SubnetId", seat.subnet.as_str())
                .with("VpcId", seat.vpc.as_str())
                .with("SourceDestCheck", true)
                .with("MacAddress", mac_address(it))
                .with("PrivateIpAddress", private)
                .with("PrivateDnsName", name)
                .with("PrivateIpAddresses", vec![first])
                .with("Groups", WireValue::list_of(groups))
                .with("Description", "")
                .with("InterfaceType", "interface")
                .with_some("Association", public),
        )
    }

    pub(crate) fn describe_interfaces(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["NetworkInterfaceIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeNetworkInterfaces", input, &played)?;
        let named = input.texts("NetworkInterfaceIds");
        let all: Vec<&Ec2Instance> =
            self.instances_of(scope).filter(|it| it.is_alive() && it.seat.is_some()).collect();
        if let Some(id) = named.iter().find(|id| all.iter().all(|it| it.interface_id() != **id)) {
            let code = "InvalidNetworkInterfaceID.NotFound";
            return Err(not_found(code, "networkInterface ID", id));
        }
        let is_named =
            |it: &&Ec2Instance| named.is_empty() || named.contains(&it.interface_id().as_str());
        let found = all.into_iter().filter(is_named).collect();
        let one = |value: String| Some(vec![value]);
        let values = |it: &&Ec2Instance, name: &str| {
            let seat = it.seat.as_ref()?;
            match name {
                "network-interface-id" => one(it.interface_id()),
                "attachment.instance-id" => one(it.id.clone()),
                "attachment.status" => one("attached".to_owned()),
                "attachment.device-index" => one("0".to_owned()),
                "availability-zone" => one(it.pool.zone.clone()),
                "group-id" => {
                    Some(self.groups_of(it).iter().map(|(id, _)| (*id).to_owned()).collect())
                }
                "group-name" => {
                    Some(self.groups_of(it).iter().map(|(_, name)| (*name).to_owned()).collect())
                }
                "owner-id" => one(account_number(&scope.account)),
                "private-ip-address" | "addresses.private-ip-address" => {
                    one(seat.private_ip.to_string())
                }
                "private-dns-name" => one(it.private_name()),
                "status" => one("in-use".to_owned()),
                "subnet-id" => one(seat.subnet.clone()),
                "vpc-id" => one(seat.vpc.clone()),
                _ => tag_values(&it.spec.interface_tags, name),
            }
        };
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().filter_map(|it| {
            let attachment = WireValue::structure()
                .with("AttachmentId", it.attachment_id())
                .with("AttachTime", self.instant(it.created))
                .with("DeleteOnTermination", true)
                .with("DeviceIndex", 0_i64)
                .with("InstanceId", it.id.as_str())
                .with("InstanceOwnerId", account_number(&scope.account))
                .with("Status", "attached");
            let interface = self.interface_to_wire(it, &it.addresses()?)?;
            Some(
                interface
                    .with("Attachment", attachment)
                    .with("AvailabilityZone", it.pool.zone.as_str())
                    .with("RequesterManaged", false)
                    .with("TagSet", tags_to_wire(&it.spec.interface_tags)),
            )
        });
        Ok(WireValue::structure()
            .with("NetworkInterfaces", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}

/// A locally administered MAC address for an instance, which no real network card has.
fn mac_address(it: &Ec2Instance) -> String {
    let [.., a, b, c, d, e] = it.number.to_be_bytes();
    format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}")
}
