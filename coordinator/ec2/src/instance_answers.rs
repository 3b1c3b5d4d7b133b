//! Instances as EC2 writes them.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::{Ec2Instance, InstanceStage, tags_to_wire};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;

/// The filters of DescribeInstances.
const FILTERS: [&str; 25] = [
    "instance-id",
    "instance-state-name",
    "instance-state-code",
    "instance-type",
    "instance-lifecycle",
    "spot-instance-request-id",
    "availability-zone",
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
];

/// The values that tags have for a filter.
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
    fn filter_values(&self, it: &Ec2Instance, name: &str) -> Option<Vec<String>> {
        let one = |value: &str| Some(vec![value.to_owned()]);
        let scope = CallScope { account: it.account.clone(), region: it.region.clone() };
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
            "image-id" => one(&it.spec.image),
            "key-name" => Some(it.spec.key.iter().cloned().collect()),
            "reservation-id" => one(&it.reservation),
            "subnet-id" => one(&self.subnet_of_zone(&scope, &it.pool.zone)),
            "vpc-id" => one(&self.vpc_id(&scope)),
            "client-token" => Some(it.token.iter().cloned().collect()),
            "private-ip-address" => one(&it.private_ip()),
            "ip-address" => one(&it.public_ip()),
            "private-dns-name" => one(&private_name(it)),
            "dns-name" => one(&public_name(it)),
            "instance.group-id" | "network-interface.group-id" => {
                Some(self.groups_of(it).into_iter().map(|(id, _)| id).collect())
            }
            "launch-index" => Some(vec![it.launch_index.to_string()]),
            "architecture" => one(architecture(&it.pool.name)),
            "owner-id" => Some(vec![account_number(&it.account)]),
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

    /// The instances that a call names, or all of the caller.
    pub(crate) fn found_instances<'a>(
        &'a self,
        scope: &'a CallScope,
        input: &WireValue,
    ) -> Result<Vec<&'a Ec2Instance>, ApiError> {
        let named = input.texts("InstanceIds");
        if named.is_empty() {
            return Ok(self.instances_of(scope).collect());
        }
        let mut found = Vec::new();
        for id in named {
            found.push(self.instance_of(scope, id)?);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found.into_iter().filter_map(|index| self.instances.get(index)).collect())
    }

    /// Instances of one reservation as EC2 writes them.
    pub(crate) fn reservation_to_wire(
        &self,
        first: &Ec2Instance,
        instances: &[&Ec2Instance],
    ) -> WireValue {
        let instances = instances.iter().map(|it| self.instance_to_wire(it));
        WireValue::structure()
            .with("ReservationId", first.reservation.as_str())
            .with("OwnerId", account_number(&first.account))
            .with("Groups", WireValue::List(Vec::new()))
            .with("Instances", WireValue::list_of(instances))
    }

    fn instance_to_wire(&self, it: &Ec2Instance) -> WireValue {
        let scope = CallScope { account: it.account.clone(), region: it.region.clone() };
        let groups = self.groups_of(it);
        let groups = WireValue::list_of(groups.iter().map(|(id, name)| {
            WireValue::structure().with("GroupId", id.as_str()).with("GroupName", name.as_str())
        }));
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
            .with("StateTransitionReason", it.transition.as_str())
            .with("AmiLaunchIndex", it.launch_index)
            .with("ProductCodes", WireValue::List(Vec::new()))
            .with("InstanceType", it.pool.name.as_str())
            .with("LaunchTime", self.instant(it.launched))
            .with("Placement", placement)
            .with("Monitoring", WireValue::structure().with("State", monitoring))
            .with("Architecture", architecture(&it.pool.name))
            .with("BlockDeviceMappings", WireValue::List(Vec::new()))
            .with("ClientToken", it.token.as_deref().unwrap_or_default())
            .with("EbsOptimized", it.spec.ebs_optimized)
            .with("EnaSupport", true)
            .with("Hypervisor", "xen")
            .with("RootDeviceName", "/dev/xvda")
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
            .with("Tags", tags_to_wire(&it.tags))
            .with("PrivateDnsName", "")
            .with("PublicDnsName", "")
            .with_some("KeyName", it.spec.key.as_deref())
            .with_some("InstanceLifecycle", (it.market == Market::Spot).then_some("spot"))
            .with_some("SpotInstanceRequestId", it.spot_request.as_deref());
        if let Some((code, message)) = it.reason {
            wire.set(
                "StateReason",
                WireValue::structure().with("Code", code).with("Message", message),
            );
        }
        if let Some(profile) = &it.spec.profile {
            let name = profile.text("Arn").or(profile.text("Name")).unwrap_or_default();
            let arn = if name.starts_with("arn:") {
                name.to_owned()
            } else {
                format!("arn:aws:iam::{}:instance-profile/{name}", account_number(&it.account))
            };
            wire.set(
                "IamInstanceProfile",
                WireValue::structure().with("Arn", arn).with("Id", name),
            );
        }
        if !it.is_alive() {
            return wire
                .with("NetworkInterfaces", WireValue::List(Vec::new()))
                .with("SecurityGroups", WireValue::List(Vec::new()));
        }
        let (subnet, vpc) = (self.subnet_of_zone(&scope, &it.pool.zone), self.vpc_id(&scope));
        let interface = WireValue::structure()
            .with("NetworkInterfaceId", format!("eni-{}", it.id.trim_start_matches("i-")))
            .with("OwnerId", account_number(&it.account))
            .with("Status", "in-use")
            .with("SubnetId", subnet.as_str())
            .with("VpcId", vpc.as_str())
            .with("SourceDestCheck", true)
            .with("PrivateIpAddress", it.private_ip())
            .with("PrivateDnsName", private_name(it))
            .with("Groups", groups.clone())
            .with("Description", "");
        let wire = wire
            .with("SubnetId", subnet)
            .with("VpcId", vpc)
            .with("PrivateIpAddress", it.private_ip())
            .with("PrivateDnsName", private_name(it))
            .with("SecurityGroups", groups)
            .with("SourceDestCheck", true)
            .with("NetworkInterfaces", vec![interface]);
        if it.stage == InstanceStage::Running {
            return wire
                .with("PublicIpAddress", it.public_ip())
                .with("PublicDnsName", public_name(it));
        }
        wire
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
        Ok(WireValue::structure()
            .with("InstanceId", id)
            .with("Output", "")
            .with("Timestamp", self.instant(self.now)))
    }
}

impl ApiDesk {
    /// No instance has UEFI data: they are modelled.
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

fn metadata_options(said: Option<&WireValue>) -> WireValue {
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

fn private_name(it: &Ec2Instance) -> String {
    format!("ip-{}.{}.compute.internal", it.private_ip().replace('.', "-"), it.region)
}

fn public_name(it: &Ec2Instance) -> String {
    format!("ec2-{}.{}.compute.amazonaws.com", it.public_ip().replace('.', "-"), it.region)
}

/// The architecture of a type: Graviton's names have a `g` after the generation.
pub(crate) fn architecture(name: &str) -> &'static str {
    let family = name.split('.').next().unwrap_or_default();
    let after = family.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.starts_with('g') || family == "a1" { "arm64" } else { "x86_64" }
}
