//! Types, zones, regions and images as EC2 writes them.

use dormouse_cloud::{InstanceType, Market};
use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope};
use crate::instance_answers::architecture;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::default_id;

/// Names, architectures, descriptions and owners of the images that DescribeImages lists; any other well-formed id counts as an image, too.
const IMAGES: [ImageRow; 4] = [
    (
        "al2023-ami-2023.6.20241212.0-kernel-6.1-x86_64",
        "x86_64",
        "Amazon Linux 2023, x86_64",
        AMAZON,
    ),
    ("al2023-ami-2023.6.20241212.0-kernel-6.1-arm64", "arm64", "Amazon Linux 2023, arm64", AMAZON),
    (
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20241209",
        "x86_64",
        "Ubuntu 24.04, amd64",
        CANONICAL,
    ),
    (
        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-20241209",
        "arm64",
        "Ubuntu 24.04, arm64",
        CANONICAL,
    ),
];

type ImageRow = (&'static str, &'static str, &'static str, &'static str);

/// Amazon's account with images of Amazon Linux.
const AMAZON: &str = "137112412989";
/// Canonical's account with images of Ubuntu, which EC2 shows under the alias "amazon", too.
const CANONICAL: &str = "099720109477";

/// Whether a call that names these owners of images, if any, means the images of one.
///
/// # Errors
///
/// `InvalidUserID.Malformed` for a name that no owner can have.
fn is_of_owners(owners: &[&str], owner: &str) -> Result<bool, ApiError> {
    let is_alias =
        |name: &str| ["self", "amazon", "aws-marketplace", "aws-backup-vault"].contains(&name);
    let is_number = |name: &str| name.len() == 12 && name.bytes().all(|it| it.is_ascii_digit());
    if let Some(wrong) = owners.iter().find(|name| !is_alias(name) && !is_number(name)) {
        let text = format!("Invalid user id: \"{wrong}\"");
        return Err(ApiError::new("InvalidUserID.Malformed", text));
    }
    Ok(owners.is_empty() || owners.contains(&"amazon") || owners.contains(&owner))
}

fn one(value: impl Into<String>) -> Option<Vec<String>> {
    Some(vec![value.into()])
}

impl ApiDesk {
    pub(crate) fn describe_types(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["InstanceTypes", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeInstanceTypes", input, &played)?;
        let named = input.texts("InstanceTypes");
        let mut kinds: Vec<(String, &InstanceType)> = Vec::new();
        for pool in self.market.pools(&scope.region) {
            if let Some(offer) = self.market.offer(&pool.kind)
                && kinds.iter().all(|(name, _)| *name != pool.name)
            {
                kinds.push((pool.name, offer));
            }
        }
        for name in &named {
            let is_like = |it: &&(String, &InstanceType)| {
                it.0 == *name || name.strip_suffix('*').is_some_and(|part| it.0.starts_with(part))
            };
            if kinds.iter().find(is_like).is_none() {
                let text = format!("The following supplied instance types do not exist: [{name}]");
                return Err(ApiError::new("InvalidInstanceType", text));
            }
        }
        kinds.retain(|(name, _)| {
            named.is_empty()
                || named.iter().any(|it| {
                    it == name || it.strip_suffix('*').is_some_and(|part| name.starts_with(part))
                })
        });
        let known = [
            "instance-type",
            "vcpu-info.default-vcpus",
            "memory-info.size-in-mib",
            "burstable-performance-supported",
            "supported-usage-class",
            "processor-info.supported-architecture",
            "current-generation",
            "bare-metal",
            "hypervisor",
        ];
        let values = |(name, offer): &(String, &InstanceType), filter: &str| match filter {
            "instance-type" => one(name.as_str()),
            "vcpu-info.default-vcpus" => one(offer.vcpus.to_string()),
            "memory-info.size-in-mib" => one((offer.memory.get() >> 20).to_string()),
            "burstable-performance-supported" => one(offer.burstable.is_some().to_string()),
            "supported-usage-class" => {
                Some(usage_classes(offer).into_iter().map(str::to_owned).collect())
            }
            "processor-info.supported-architecture" => one(architecture(name)),
            "current-generation" => one("true"),
            "bare-metal" => one("false"),
            "hypervisor" => one("nitro"),
            _ => None,
        };
        let kinds = filter_by(kinds, input, values, &known)?;
        let (page, next) = take_page(kinds, input, (5, 100))?;
        let written = page.into_iter().map(|(name, offer)| type_to_wire(&name, offer));
        Ok(WireValue::structure()
            .with("InstanceTypes", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn describe_offerings(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["LocationType", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeInstanceTypeOfferings", input, &played)?;
        let by = input.text("LocationType").unwrap_or("region");
        let mut offerings: Vec<(String, String)> = Vec::new();
        for pool in self.market.pools(&scope.region) {
            let place = match by {
                "region" => scope.region.clone(),
                "availability-zone" => pool.zone,
                other => {
                    let text = format!("LocationType {other} is not played here");
                    return Err(ApiError::new("UnsupportedOperation", text));
                }
            };
            let offering = (pool.name, place);
            if !offerings.contains(&offering) {
                offerings.push(offering);
            }
        }
        let values = |(name, place): &(String, String), filter: &str| match filter {
            "instance-type" => one(name.as_str()),
            "location" => one(place.as_str()),
            _ => None,
        };
        let offerings = filter_by(offerings, input, values, &["instance-type", "location"])?;
        let (page, next) = take_page(offerings, input, (5, 1_000))?;
        let written = page.into_iter().map(|(name, place)| {
            WireValue::structure()
                .with("InstanceType", name)
                .with("LocationType", by)
                .with("Location", place)
        });
        Ok(WireValue::structure()
            .with("InstanceTypeOfferings", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn describe_zones(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["ZoneNames", "ZoneIds", "AllAvailabilityZones", "DryRun", "Filters"];
        refuse_others("DescribeAvailabilityZones", input, &played)?;
        let (names, ids) = (input.texts("ZoneNames"), input.texts("ZoneIds"));
        let mut zones: Vec<&String> = self.market.zones(&scope.region).iter().collect();
        if let Some(wrong) = names.iter().find(|name| zones.iter().all(|zone| zone != *name)) {
            let text = format!("Invalid availability zone: [{wrong}]");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        zones.retain(|zone| {
            (names.is_empty() || names.contains(&zone.as_str()))
                && (ids.is_empty() || ids.contains(&zone_id(zone).as_str()))
        });
        let known = [
            "zone-name",
            "zone-id",
            "region-name",
            "state",
            "zone-type",
            "opt-in-status",
            "group-name",
        ];
        let values = |zone: &&String, name: &str| match name {
            "zone-name" => one(zone.as_str()),
            "zone-id" => one(zone_id(zone)),
            "region-name" | "group-name" => one(scope.region.as_str()),
            "state" => one("available"),
            "zone-type" => one("availability-zone"),
            "opt-in-status" => one("opt-in-not-required"),
            _ => None,
        };
        let zones = filter_by(zones, input, values, &known)?;
        let written = zones.into_iter().map(|zone| {
            WireValue::structure()
                .with("State", "available")
                .with("OptInStatus", "opt-in-not-required")
                .with("RegionName", scope.region.as_str())
                .with("ZoneName", zone.as_str())
                .with("ZoneId", zone_id(zone))
                .with("GroupName", scope.region.as_str())
                .with("NetworkBorderGroup", scope.region.as_str())
                .with("ZoneType", "availability-zone")
                .with("Messages", WireValue::List(Vec::new()))
        });
        Ok(WireValue::structure().with("AvailabilityZones", WireValue::list_of(written)))
    }

    pub(crate) fn describe_regions(&self, input: &WireValue) -> Result<WireValue, ApiError> {
        let played = ["RegionNames", "AllRegions", "DryRun", "Filters"];
        refuse_others("DescribeRegions", input, &played)?;
        let named = input.texts("RegionNames");
        let regions: Vec<&str> = self.market.regions().collect();
        if let Some(wrong) = named.iter().find(|name| !regions.contains(name)) {
            let text = format!("The experiment has no region {wrong}");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let regions = regions.into_iter().filter(|it| named.is_empty() || named.contains(it));
        let known = ["region-name", "endpoint", "opt-in-status"];
        let endpoint = |region: &str| format!("ec2.{region}.amazonaws.com");
        let values = |region: &&str, name: &str| match name {
            "region-name" => one(*region),
            "endpoint" => one(endpoint(region)),
            "opt-in-status" => one("opt-in-not-required"),
            _ => None,
        };
        let regions = filter_by(regions.collect(), input, values, &known)?;
        let written = regions.into_iter().map(|region| {
            WireValue::structure()
                .with("RegionName", region)
                .with("Endpoint", endpoint(region))
                .with("OptInStatus", "opt-in-not-required")
        });
        Ok(WireValue::structure().with("Regions", WireValue::list_of(written)))
    }

    pub(crate) fn describe_images(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "ExecutableUsers",
            "ImageIds",
            "Owners",
            "IncludeDeprecated",
            "IncludeDisabled",
            "DryRun",
            "Filters",
            "NextToken",
            "MaxResults",
        ];
        refuse_others("DescribeImages", input, &played)?;
        let owners = input.texts("Owners");
        let mut images: Vec<(String, ImageRow)> = Vec::new();
        for row in IMAGES {
            if is_of_owners(&owners, row.3)? {
                images.push((default_id(0, "ami", &format!("{} {}", scope.region, row.0)), row));
            }
        }
        let named = input.texts("ImageIds");
        if !named.is_empty() {
            let known = std::mem::take(&mut images);
            for id in named {
                let spec =
                    crate::launch_spec::LaunchSpec { image: id.to_owned(), ..Default::default() };
                spec.check()?;
                let about = "An image of which only the id is known";
                let other = (id.to_owned(), ("an image of this id", "x86_64", about, AMAZON));
                let found = known.iter().find(|image| image.0 == id).cloned();
                // Whose image it is that only the call knows is not known; the others' owners are.
                let is_unknown = !is_listed(&scope.region, id);
                images.extend(found.or_else(|| is_unknown.then_some(other)));
            }
        }
        let known = [
            "image-id",
            "name",
            "architecture",
            "owner-alias",
            "owner-id",
            "state",
            "virtualization-type",
            "root-device-type",
            "hypervisor",
            "image-type",
            "is-public",
            "description",
            "platform-details",
        ];
        let values = |(id, (name, architecture, about, owner)): &(String, ImageRow),
                      filter: &str| match filter {
            "image-id" => one(id.as_str()),
            "name" => one(*name),
            "architecture" => one(*architecture),
            "owner-alias" => one("amazon"),
            "owner-id" => one(*owner),
            "state" => one("available"),
            "virtualization-type" => one("hvm"),
            "root-device-type" => one("ebs"),
            "hypervisor" => one("xen"),
            "image-type" => one("machine"),
            "is-public" => one("true"),
            "description" => one(*about),
            "platform-details" => one("Linux/UNIX"),
            _ => None,
        };
        let images = filter_by(images, input, values, &known)?;
        let (page, next) = take_page(images, input, (1, 1_000))?;
        let written = page.into_iter().map(|(id, (name, architecture, about, owner))| {
            WireValue::structure()
                .with("ImageId", id)
                .with("Name", name)
                .with("Description", about)
                .with("Architecture", architecture)
                .with("State", "available")
                .with("Public", true)
                .with("OwnerId", owner)
                .with("ImageOwnerAlias", "amazon")
                .with("ImageType", "machine")
                .with("ImageLocation", format!("amazon/{name}"))
                .with("RootDeviceName", root_device_name(is_amazon_name(name)))
                .with("RootDeviceType", "ebs")
                .with("VirtualizationType", "hvm")
                .with("Hypervisor", "xen")
                .with("EnaSupport", true)
                .with("PlatformDetails", "Linux/UNIX")
                .with("UsageOperation", "RunInstances")
                .with("CreationDate", "2024-12-12T00:00:00.000Z")
                .with("BlockDeviceMappings", vec![root_device(is_amazon_name(name))])
        });
        Ok(WireValue::structure()
            .with("Images", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}

/// Whether an image of this name is an Amazon Linux.
fn is_amazon_name(name: &str) -> bool {
    name.starts_with("al2023")
}

/// Whether an image is one of the region's Amazon Linux images.
pub(crate) fn is_amazon_linux(region: &str, image: &str) -> bool {
    let of_amazon = IMAGES.iter().filter(|row| is_amazon_name(row.0));
    let mut ids = of_amazon.map(|row| default_id(0, "ami", &format!("{region} {}", row.0)));
    ids.any(|id| id == image)
}

/// Whether an image is one that DescribeImages lists in the region.
fn is_listed(region: &str, image: &str) -> bool {
    IMAGES.iter().any(|row| default_id(0, "ami", &format!("{region} {}", row.0)) == image)
}

/// The name of the root device of an image: Amazon Linux has a name of its own.
pub(crate) const fn root_device_name(is_amazon: bool) -> &'static str {
    if is_amazon { "/dev/xvda" } else { "/dev/sda1" }
}

fn root_device(is_amazon: bool) -> WireValue {
    let volume = WireValue::structure()
        .with("DeleteOnTermination", true)
        .with("VolumeSize", 8_i64)
        .with("VolumeType", "gp3")
        .with("Encrypted", false);
    WireValue::structure().with("DeviceName", root_device_name(is_amazon)).with("Ebs", volume)
}

/// The id of a zone, like `use1-az1`: zone a is az1 for every account, while AWS gives each account another order.
pub(crate) fn zone_id(zone: &str) -> String {
    let mut parts = zone.split('-');
    let (area, side) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let last = parts.next().unwrap_or_default();
    let number = last.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let letter = last.bytes().last().filter(u8::is_ascii_lowercase).unwrap_or(b'a');
    let side: String = match side {
        "northeast" => "ne".to_owned(),
        "southeast" => "se".to_owned(),
        other => other.chars().take(1).collect(),
    };
    format!("{area}{side}{number}-az{}", u32::from(letter - b'a') + 1)
}

fn usage_classes(offer: &InstanceType) -> Vec<&'static str> {
    let classes = [(Market::OnDemand, "on-demand"), (Market::Spot, "spot")];
    classes
        .into_iter()
        .filter(|(market, _)| offer.price(*market).is_some())
        .map(|(_, name)| name)
        .collect()
}

fn type_to_wire(name: &str, offer: &InstanceType) -> WireValue {
    let architecture = architecture(name);
    let threads = if offer.vcpus > 1 && architecture == "x86_64" { 2 } else { 1 };
    let processor = WireValue::structure().with("SupportedArchitectures", vec![architecture]);
    let vcpus = WireValue::structure()
        .with("DefaultVCpus", i64::from(offer.vcpus))
        .with("DefaultCores", i64::from(offer.vcpus / threads))
        .with("DefaultThreadsPerCore", i64::from(threads));
    let mib = i64::try_from(offer.memory.get() >> 20).unwrap_or(i64::MAX);
    WireValue::structure()
        .with("InstanceType", name)
        .with("CurrentGeneration", true)
        .with("FreeTierEligible", false)
        .with("SupportedUsageClasses", usage_classes(offer))
        .with("SupportedRootDeviceTypes", vec!["ebs"])
        .with("SupportedVirtualizationTypes", vec!["hvm"])
        .with("BareMetal", false)
        .with("Hypervisor", "nitro")
        .with("ProcessorInfo", processor)
        .with("VCpuInfo", vcpus)
        .with("MemoryInfo", WireValue::structure().with("SizeInMiB", mib))
        .with("InstanceStorageSupported", false)
        .with("HibernationSupported", true)
        .with("BurstablePerformanceSupported", offer.burstable.is_some())
        .with("DedicatedHostsSupported", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_ids_like_those_of_aws() {
        assert_eq!(zone_id("us-east-1b"), "use1-az2");
        assert_eq!(zone_id("ap-northeast-1a"), "apne1-az1");
    }
}
