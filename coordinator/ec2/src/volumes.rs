//! Root volumes: each instance has one, a record that comes and goes with it and stores nothing.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::{Ec2Instance, tags_to_wire};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};

const FILTERS: [&str; 13] = [
    "volume-id",
    "attachment.instance-id",
    "attachment.status",
    "attachment.device",
    "attachment.delete-on-termination",
    "availability-zone",
    "status",
    "size",
    "volume-type",
    "encrypted",
    "snapshot-id",
    "tag-key",
    "tag-value",
];

/// The size, in GiB, of a root volume for which the user gives no size.
const SIZE_GIB: i64 = 8;

impl Ec2Instance {
    /// The id of the root volume.
    pub(crate) fn volume_id(&self) -> String {
        format!("vol-{}", self.id.trim_start_matches("i-"))
    }

    /// The name of the root device.
    pub(crate) fn device_name(&self) -> &str {
        let named = self.spec.root_device.as_ref().and_then(|device| device.text("DeviceName"));
        named.unwrap_or("/dev/xvda")
    }

    fn ebs(&self) -> Option<&WireValue> {
        self.spec.root_device.as_ref()?.member("Ebs")
    }

    /// The size of the root volume, in GiB.
    fn volume_gib(&self) -> i64 {
        self.ebs().and_then(|ebs| ebs.integer("VolumeSize")).unwrap_or(SIZE_GIB)
    }

    fn volume_kind(&self) -> &str {
        self.ebs().and_then(|ebs| ebs.text("VolumeType")).unwrap_or("gp3")
    }

    fn is_encrypted(&self) -> bool {
        self.ebs().and_then(|ebs| ebs.flag("Encrypted")) == Some(true)
    }
}

impl ApiDesk {
    /// The block devices of an instance as an element of DescribeInstances' answer.
    pub(crate) fn devices_to_wire(&self, it: &Ec2Instance) -> WireValue {
        let ebs = WireValue::structure()
            .with("AttachTime", self.instant(it.created))
            .with("DeleteOnTermination", true)
            .with("Status", "attached")
            .with("VolumeId", it.volume_id());
        let device = WireValue::structure().with("DeviceName", it.device_name()).with("Ebs", ebs);
        WireValue::list_of(it.is_alive().then_some(device))
    }

    pub(crate) fn describe_volumes(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["VolumeIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeVolumes", input, &played)?;
        let named = input.texts("VolumeIds");
        let all: Vec<&Ec2Instance> = self.instances_of(scope).filter(|it| it.is_alive()).collect();
        if let Some(id) = named.iter().find(|id| all.iter().all(|it| it.volume_id() != **id)) {
            let text = format!("The volume '{id}' does not exist.");
            return Err(ApiError::new("InvalidVolume.NotFound", text));
        }
        let is_named = |it: &&Ec2Instance| named.is_empty() || named.contains(&&*it.volume_id());
        let found = all.into_iter().filter(is_named).collect();
        let one = |value: String| Some(vec![value]);
        let values = |it: &&Ec2Instance, name: &str| match name {
            "volume-id" => one(it.volume_id()),
            "attachment.instance-id" => one(it.id.clone()),
            "attachment.status" => one("attached".to_owned()),
            "attachment.device" => one(it.device_name().to_owned()),
            "attachment.delete-on-termination" => one("true".to_owned()),
            "availability-zone" => one(it.pool.zone.clone()),
            "status" => one("in-use".to_owned()),
            "size" => one(it.volume_gib().to_string()),
            "volume-type" => one(it.volume_kind().to_owned()),
            "encrypted" => one(it.is_encrypted().to_string()),
            "snapshot-id" => Some(Vec::new()),
            _ => tag_values(&it.spec.volume_tags, name),
        };
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|it| {
            let attachment = WireValue::structure()
                .with("AttachTime", self.instant(it.created))
                .with("DeleteOnTermination", true)
                .with("Device", it.device_name())
                .with("InstanceId", it.id.as_str())
                .with("State", "attached")
                .with("VolumeId", it.volume_id());
            WireValue::structure()
                .with("VolumeId", it.volume_id())
                .with("Attachments", vec![attachment])
                .with("AvailabilityZone", it.pool.zone.as_str())
                .with("CreateTime", self.instant(it.created))
                .with("Encrypted", it.is_encrypted())
                .with("Size", it.volume_gib())
                .with("SnapshotId", "")
                .with("State", "in-use")
                .with("VolumeType", it.volume_kind())
                .with("Tags", tags_to_wire(&it.spec.volume_tags))
        });
        Ok(WireValue::structure()
            .with("Volumes", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
