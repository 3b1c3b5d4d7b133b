//! Instances as EC2 writes them.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue, write_instant};
use dormouse_units::Time;

use crate::catalogue_answers::zone_id;
use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::{Ec2Instance, InstanceStage};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::resource_tags::tags_to_wire;

/// Names of the filters that DescribeInstances accepts.
const FILTERS: [&str; 62] = [
    "instance-id",
    "instance-state-name",
    "instance-state-code",
    "instance-type",
    "instance-lifecycle",
    "spot-instance-request-id",
    "availability-zone",
    "availability-zone-id",
    "launch-time",
    "group-id",
    "group-name",
    "platform",
    "ebs-optimized",
    "product-code",
    "product-code.type",
    "state-reason-message",
    "image-id",
    "key-name",
    "reservation-id",
    "subnet-id",
    "vpc-id",
    "client-token",
    "private-ip-address",
    "ip-address",
    "private-dns-name",
    "dns-name",
    "instance.group-id",
    "network-interface.group-id",
    "launch-index",
    "architecture",
    "owner-id",
    "tag-key",
    "tag-value",
    "tenancy",
    "placement-group-name",
    "instance.group-name",
    "network-interface.group-name",
    "network-interface.network-interface-id",
    "network-interface.subnet-id",
    "network-interface.vpc-id",
    "network-interface.private-dns-name",
    "network-interface.availability-zone",
    "network-interface.addresses.private-ip-address",
    "network-interface.status",
    "network-interface.owner-id",
    "iam-instance-profile.arn",
    "monitoring-state",
    "root-device-name",
    "root-device-type",
    "hypervisor",
    "virtualization-type",
    "platform-details",
    "source-dest-check",
    "metadata-options.http-tokens",
    "metadata-options.http-endpoint",
    "hibernation-options.configured",
    "reason",
    "state-reason-code",
    "block-device-mapping.volume-id",
    "block-device-mapping.device-name",
    "block-device-mapping.status",
    "block-device-mapping.delete-on-termination",
];

/// The values of an instance's tags for the filter `name`; `None` if the filter is not about tags.
pub(crate) fn tag_values(tags: &[(String, String)], name: &str) -> Option<Vec<String>> {
    match name {
        "tag-key" => Some(tags.iter().map(|(key, _)| key.clone()).collect()),
        "tag-value" => Some(tags.iter().map(|(_, value)| value.clone()).collect()),
        _ => {
            let key = name.strip_prefix("tag:")?;
            Some(
                tags.iter().filter(|(own, _)| own == key).map(|(_, value)| value.clone()).collect(),
            )
        }
    }
}

impl ApiDesk {
    /// An instant as filters have it.
    pub(crate) fn time_text(&self, at: Time) -> String {
        match self.instant(at) {
            WireValue::Instant(micros) => write_instant(micros),
            _ => String::new(),
        }
    }

    fn filter_values(&self, it: &Ec2Instance, name: &str) -> Option<Vec<String>> {
        let one = |value: &str| Some(vec![value.to_owned()]);
        let seat = it.seat.as_ref().filter(|_| it.is_alive());
        match name {
            "instance-id" => one(&it.id),
            "instance-state-name" => one(it.stage.code_and_name().1),
            "instance-state-code" => Some(vec![it.stage.code_and_name().0.to_string()]),
            "instance-type" => one(&it.pool.name),
            "instance-lifecycle" => {
                Some((it.market == Market::Spot).then(|| "spot".to_owned()).into_iter().collect())
            }
            "spot-instance-request-id" => Some(it.spot_request.iter().cloned().collect()),
            "availability-zone" => one(&it.pool.zone),
            "availability-zone-id" => one(&zone_id(&it.pool.zone)),
            "launch-time" => one(&self.time_text(it.launched)),
            "ebs-optimized" => one(&it.spec.ebs_optimized.to_string()),
            "image-id" => one(&it.spec.image),
            "key-name" => Some(it.spec.key.iter().cloned().collect()),
            "reservation-id" => one(&it.reservation),
            "subnet-id" | "network-interface.subnet-id" => {
                seat.map(|seat| vec![seat.subnet.clone()])
            }
            "vpc-id" | "network-interface.vpc-id" => seat.map(|seat| vec![seat.vpc.clone()]),
            "client-token" => Some(it.token.iter().cloned().collect()),
            "private-ip-address" | "network-interface.addresses.private-ip-address" => {
                seat.map(|seat| vec![seat.private_ip.to_string()])
            }
            "ip-address" => it.public_ip().map(|address| vec![address]),
            "private-dns-name" | "network-interface.private-dns-name" => one(&it.private_name()),
            "dns-name" => one(&it.public_name()),
            "group-id" | "instance.group-id" | "network-interface.group-id" => {
                Some(self.groups_of(it).iter().map(|(id, _)| (*id).to_owned()).collect())
            }
            "group-name" | "instance.group-name" | "network-interface.group-name" => {
                Some(self.groups_of(it).iter().map(|(_, name)| (*name).to_owned()).collect())
            }
            "network-interface.network-interface-id" => one(&it.interface_id()),
            "network-interface.availability-zone" => one(&it.pool.zone),
            "network-interface.status" => one("in-use"),
            "iam-instance-profile.arn" => it.profile_arn().map(|arn| vec![arn]),
            "monitoring-state" => one(if it.spec.monitored { "enabled" } else { "disabled" }),
            "root-device-name" => one(it.device_name()),
            "root-device-type" => one("ebs"),
            "hypervisor" => one("xen"),
            "virtualization-type" => one("hvm"),
            "platform-details" => one("Linux/UNIX"),
            "source-dest-check" => one(&(!it.spec.skips_source_check).to_string()),
            "block-device-mapping.volume-id" => {
                Some(self.volumes_of(it).map(|(volume, _)| volume.id.clone()).collect())
            }
            "block-device-mapping.device-name" => {
                Some(self.volumes_of(it).map(|(_, at)| at.device.clone()).collect())
            }
            "block-device-mapping.status" => {
                Some(self.volumes_of(it).map(|_| "attached".to_owned()).collect())
            }
            "block-device-mapping.delete-on-termination" => {
                let ends = self.volumes_of(it).map(|(_, at)| at.ends_with_instance.to_string());
                Some(ends.collect())
            }
            "metadata-options.http-tokens" => {
                metadata_options(it.spec.metadata.as_ref()).text("HttpTokens").and_then(one)
            }
            "metadata-options.http-endpoint" => {
                metadata_options(it.spec.metadata.as_ref()).text("HttpEndpoint").and_then(one)
            }
            "hibernation-options.configured" => one(&it.spec.hibernation.to_string()),
            "reason" => one(it.shown_transition()),
            "state-reason-code" => it.shown_reason().and_then(|(code, _)| one(code)),
            "state-reason-message" => it.shown_reason().and_then(|(_, message)| one(message)),
            "launch-index" => Some(vec![it.launch_index.to_string()]),
            "architecture" => one(architecture(&it.pool.name)),
            "owner-id" | "network-interface.owner-id" => {
                Some(vec![account_number(&it.scope.account)])
            }
            "tenancy" => one("default"),
            _ => tag_values(&it.tags, name),
        }
    }

    pub(crate) fn describe_instances(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "InstanceIds",
            "DryRun",
            "Filters",
            "NextToken",
            "MaxResults",
            "IncludeManagedResources",
        ];
        refuse_others("DescribeInstances", input, &played)?;
        let found = self.found_instances(scope, input)?;
        let found = filter_by(found, input, |it, name| self.filter_values(it, name), &FILTERS)?;
        let mut reservations: Vec<Vec<&Ec2Instance>> = Vec::new();
        for instance in found {
            match reservations.last_mut() {
                Some(last)
                    if last.first().is_some_and(|it| it.reservation == instance.reservation) =>
                {
                    last.push(instance);
                }
                _ => reservations.push(vec![instance]),
            }
        }
        let (page, next) = take_page(reservations, input, (5, 1_000))?;
        let written =
            page.iter().filter_map(|all| Some(self.reservation_to_wire(all.first()?, all)));
        Ok(WireValue::structure()
            .with("Reservations", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    /// The instances that a call names by their ids; if the call names none, all instances of the caller.
    pub(crate) fn found_instances<'a>(
        &'a self,
        scope: &'a CallScope,
        input: &WireValue,
    ) -> Result<Vec<&'a Ec2Instance>, ApiError> {
        let named = input.texts("InstanceIds");
        if named.is_empty() {
            return Ok(self.instances_of(scope).collect());
        }
        if input.integer("MaxResults").is_some() {
            let text = "The parameter instancesSet cannot be used with the parameter maxResults";
            return Err(ApiError::new("InvalidParameterCombination", text));
        }
        let mut found = self.all_instances(scope, &named)?;
        found.sort_unstable();
        found.dedup();
        Ok(found.into_iter().filter_map(|index| self.instances.get(index)).collect())
    }

    /// Encodes instances of one reservation as EC2 does.
    pub(crate) fn reservation_to_wire(
        &self,
        first: &Ec2Instance,
        instances: &[&Ec2Instance],
    ) -> WireValue {
        let instances =
            instances.iter().map(|it| self.instances.described(it, || self.instance_to_wire(it)));
        WireValue::structure()
            .with("ReservationId", first.reservation.as_str())
            .with("OwnerId", account_number(&first.scope.account))
            .with("Groups", WireValue::List(Vec::new()))
            .with("Instances", WireValue::list_of(instances))
    }

    fn instance_to_wire(&self, it: &Ec2Instance) -> WireValue {
        let placement = WireValue::structure()
            .with("AvailabilityZone", it.pool.zone.as_str())
            .with("GroupName", "")
            .with("Tenancy", "default");
        let vcpus = self.market.vcpus(&it.pool.kind);
        let threads = if vcpus > 1 && architecture(&it.pool.name) == "x86_64" { 2 } else { 1 };
        let cpus = WireValue::structure()
            .with("CoreCount", i64::from(vcpus / threads))
            .with("ThreadsPerCore", i64::from(threads));
        let monitoring = if it.spec.monitored { "enabled" } else { "disabled" };
        let mut wire = WireValue::structure()
            .with("InstanceId", it.id.as_str())
            .with("ImageId", it.spec.image.as_str())
            .with("State", it.stage.to_wire())
            .with("StateTransitionReason", it.shown_transition())
            .with("AmiLaunchIndex", it.launch_index)
            .with("ProductCodes", WireValue::List(Vec::new()))
            .with("InstanceType", it.pool.name.as_str())
            .with("LaunchTime", self.instant(it.launched))
            .with("Placement", placement)
            .with("Monitoring", WireValue::structure().with("State", monitoring))
            .with("Architecture", architecture(&it.pool.name))
            .with("BlockDeviceMappings", self.devices_to_wire(it))
            .with("ClientToken", it.token.as_deref().unwrap_or_default())
            .with("EbsOptimized", it.spec.ebs_optimized)
            .with("EnaSupport", true)
            .with("Hypervisor", "xen")
            .with("RootDeviceName", it.device_name())
            .with("RootDeviceType", "ebs")
            .with("VirtualizationType", "hvm")
            .with("CpuOptions", cpus)
            .with(
                "HibernationOptions",
                WireValue::structure().with("Configured", it.spec.hibernation),
            )
            .with("EnclaveOptions", WireValue::structure().with("Enabled", false))
            .with("MetadataOptions", metadata_options(it.spec.metadata.as_ref()))
            .with("PlatformDetails", "Linux/UNIX")
            .with("UsageOperation", "RunInstances")
            .with_some("Tags", (!it.tags.is_empty()).then(|| tags_to_wire(&it.tags)))
            .with_some("KeyName", it.spec.key.as_deref())
            .with_some("InstanceLifecycle", (it.market == Market::Spot).then_some("spot"))
            .with_some("SpotInstanceRequestId", it.spot_request.as_deref());
        if let Some((code, message)) = it.shown_reason() {
            wire.set(
                "StateReason",
                WireValue::structure().with("Code", code).with("Message", message),
            );
        }
        if let Some(arn) = it.profile_arn() {
            let id = arn.rsplit('/').next().unwrap_or_default().to_owned();
            wire.set("IamInstanceProfile", WireValue::structure().with("Arn", arn).with("Id", id));
        }
        let place = it.seat.as_ref().filter(|_| it.is_alive()).zip(it.addresses());
        let Some((seat, at)) = place else {
            return wire
                .with("PrivateDnsName", it.private_name())
                .with("PublicDnsName", "")
                .with("NetworkInterfaces", WireValue::List(Vec::new()))
                .with("SecurityGroups", WireValue::List(Vec::new()));
        };
        let groups = self
            .groups_of(it)
            .into_iter()
            .map(|(id, name)| WireValue::structure().with("GroupId", id).with("GroupName", name));
        let interface = self.instance_interface(it, &at);
        let (public_ip, public_name) = at.public.unzip();
        wire.with("SubnetId", seat.subnet.as_str())
            .with("VpcId", seat.vpc.as_str())
            .with("PrivateIpAddress", at.private_ip)
            .with("PrivateDnsName", at.private_name)
            .with("PublicDnsName", public_name.unwrap_or_default())
            .with("SecurityGroups", WireValue::list_of(groups))
            .with("SourceDestCheck", !it.spec.skips_source_check)
            .with("NetworkInterfaces", WireValue::list_of(interface))
            .with_some("PublicIpAddress", public_ip)
    }

    pub(crate) fn describe_instance_status(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "InstanceIds",
            "DryRun",
            "Filters",
            "NextToken",
            "MaxResults",
            "IncludeAllInstances",
            "IncludeManagedResources",
        ];
        refuse_others("DescribeInstanceStatus", input, &played)?;
        let known = [
            "instance-state-name",
            "instance-state-code",
            "availability-zone",
            "availability-zone-id",
            "event.code",
            "instance-status.status",
            "system-status.status",
        ];
        let is_all = input.flag("IncludeAllInstances") == Some(true);
        let mut found = self.found_instances(scope, input)?;
        found.retain(|it| is_all || it.stage == InstanceStage::Running);
        let status = |it: &Ec2Instance| {
            if it.stage == InstanceStage::Running { "ok" } else { "not-applicable" }
        };
        let values = |it: &&Ec2Instance, name: &str| match name {
            "instance-status.status" | "system-status.status" => Some(vec![status(it).to_owned()]),
            other => self.filter_values(it, other),
        };
        let found = filter_by(found, input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|it| {
            let status = status(it);
            let mut summary = WireValue::structure().with("Status", status);
            if status == "ok" {
                let passed =
                    WireValue::structure().with("Name", "reachability").with("Status", "passed");
                summary.set("Details", vec![passed]);
            }
            WireValue::structure()
                .with("InstanceId", it.id.as_str())
                .with("AvailabilityZone", it.pool.zone.as_str())
                .with("InstanceState", it.stage.to_wire())
                .with("InstanceStatus", summary.clone())
                .with("SystemStatus", summary)
        });
        Ok(WireValue::structure()
            .with("InstanceStatuses", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn console_output(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("GetConsoleOutput", input, &["InstanceId", "Latest", "DryRun"])?;
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let id = self.instances.get(index).map(|it| it.id.as_str()).unwrap_or_default();
        // Nothing runs on a modelled machine, and so nothing is written.
        let (output, at) = self.console_text(id);
        Ok(WireValue::structure()
            .with("InstanceId", id)
            .with("Output", output)
            .with("Timestamp", self.instant(at.unwrap_or(self.now))))
    }
}

impl ApiDesk {
    /// Answers GetInstanceUefiData: always an error, as emulated instances have no UEFI data.
    pub(crate) fn uefi_data(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let id = input.text("InstanceId").unwrap_or_default();
        let text = match self.instance_of(scope, id) {
            Ok(_) => {
                let text = format!("The instance '{id}' has no UEFI data");
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            Err(_) => format!("The instance ID '{id}' does not exist"),
        };
        Err(ApiError::new("InvalidInstanceID.NotFound", text))
    }
}

pub(crate) fn metadata_options(said: Option<&WireValue>) -> WireValue {
    let text = |name: &str, or: &str| said.and_then(|it| it.text(name)).unwrap_or(or).to_owned();
    let hops = said.and_then(|it| it.integer("HttpPutResponseHopLimit")).unwrap_or(2);
    WireValue::structure()
        .with("State", "applied")
        .with("HttpTokens", text("HttpTokens", "required"))
        .with("HttpPutResponseHopLimit", hops)
        .with("HttpEndpoint", text("HttpEndpoint", "enabled"))
        .with("HttpProtocolIpv6", text("HttpProtocolIpv6", "disabled"))
        .with("InstanceMetadataTags", text("InstanceMetadataTags", "disabled"))
}

impl Ec2Instance {
    /// The ARN of the instance profile; `None` if the instance has none.
    pub(crate) fn profile_arn(&self) -> Option<String> {
        let profile = self.spec.profile.as_ref()?;
        let name = profile.text("Arn").or(profile.text("Name"))?;
        if name.starts_with("arn:") {
            return Some(name.to_owned());
        }
        let account = account_number(&self.scope.account);
        Some(format!("arn:aws:iam::{account}:instance-profile/{name}"))
    }
}

/// The processor architecture of an instance type. Graviton types have a `g` after the generation in their name.
pub(crate) fn architecture(name: &str) -> &'static str {
    let family = name.split('.').next().unwrap_or_default();
    let after = family.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.starts_with('g') || family == "a1" { "arm64" } else { "x86_64" }
}
