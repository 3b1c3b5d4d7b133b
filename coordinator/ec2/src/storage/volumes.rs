//! DescribeVolumes, and volumes as EC2 writes them.

use dormouse_ec2_wire::{ApiError, WireValue, write_instant};

use crate::desk::{ApiDesk, CallScope};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::resource_tags::tags_to_wire;
use crate::storage_records::{VolumeAttachment, VolumeRecord};

const FILTERS: [&str; 16] = [
    "volume-id",
    "attachment.attach-time",
    "attachment.instance-id",
    "attachment.status",
    "attachment.device",
    "attachment.delete-on-termination",
    "availability-zone",
    "create-time",
    "status",
    "size",
    "volume-type",
    "encrypted",
    "multi-attach-enabled",
    "snapshot-id",
    "tag-key",
    "tag-value",
];

pub(super) fn volume_not_found(id: &str) -> ApiError {
    ApiError::new("InvalidVolume.NotFound", format!("The volume '{id}' does not exist."))
}

impl ApiDesk {
    /// An instant of the run as the text that filters on times compare with.
    pub(super) fn instant_text(&self, at: dormouse_units::Time) -> String {
        match self.instant(at) {
            WireValue::Instant(micros) => write_instant(micros),
            _ => String::new(),
        }
    }

    fn volume_values(&self, volume: &VolumeRecord, name: &str) -> Option<Vec<String>> {
        let one = |value: String| Some(vec![value]);
        let of_each = |value: &dyn Fn(&VolumeAttachment) -> String| {
            Some(volume.attachments.iter().map(value).collect())
        };
        match name {
            "volume-id" => one(volume.id.clone()),
            "attachment.attach-time" => of_each(&|at| self.instant_text(at.since)),
            "attachment.instance-id" => of_each(&|at| at.instance.clone()),
            "attachment.status" => of_each(&|_| "attached".to_owned()),
            "attachment.device" => of_each(&|at| at.device.clone()),
            "attachment.delete-on-termination" => of_each(&|at| at.ends_with_instance.to_string()),
            "availability-zone" => one(volume.zone.clone()),
            "create-time" => one(self.instant_text(volume.created)),
            "status" => one(volume.state().to_owned()),
            "size" => one(volume.traits.size_gib.to_string()),
            "volume-type" => one(volume.traits.kind.clone()),
            "encrypted" => one(volume.kms_key.is_some().to_string()),
            "multi-attach-enabled" => one(volume.traits.is_multi_attach.to_string()),
            "snapshot-id" => Some(volume.snapshot.iter().cloned().collect()),
            _ => tag_values(&volume.tags, name),
        }
    }

    pub(super) fn attachment_to_wire(&self, volume: &str, at: &VolumeAttachment) -> WireValue {
        WireValue::structure()
            .with("AttachTime", self.instant(at.since))
            .with("DeleteOnTermination", at.ends_with_instance)
            .with("Device", at.device.as_str())
            .with("InstanceId", at.instance.as_str())
            .with("VolumeId", volume)
    }

    pub(super) fn volume_to_wire(&self, volume: &VolumeRecord) -> WireValue {
        let attachments = volume
            .attachments
            .iter()
            .map(|at| self.attachment_to_wire(&volume.id, at).with("State", "attached"));
        let tags = (!volume.tags.is_empty()).then(|| tags_to_wire(&volume.tags));
        WireValue::structure()
            .with("VolumeId", volume.id.as_str())
            .with("Attachments", WireValue::list_of(attachments))
            .with("AvailabilityZone", volume.zone.as_str())
            .with("CreateTime", self.instant(volume.created))
            .with("Encrypted", volume.kms_key.is_some())
            .with("MultiAttachEnabled", volume.traits.is_multi_attach)
            .with("Size", volume.traits.size_gib)
            .with("SnapshotId", volume.snapshot.as_deref().unwrap_or_default())
            .with("State", volume.state())
            .with("VolumeType", volume.traits.kind.as_str())
            .with_some("Iops", volume.traits.iops)
            .with_some("Throughput", volume.traits.throughput)
            .with_some("KmsKeyId", volume.kms_key.as_deref())
            .with_some("Tags", tags)
    }

    pub(crate) fn describe_volumes(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["VolumeIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeVolumes", input, &played)?;
        let (named, storage) = (input.texts("VolumeIds"), self.storage(scope));
        if let Some(id) = named.iter().find(|id| storage.volume(id).is_none()) {
            return Err(volume_not_found(id));
        }
        let is_named = |it: &&VolumeRecord| named.is_empty() || named.contains(&it.id.as_str());
        let found = storage.volumes.values().filter(is_named).collect();
        let values = |it: &&VolumeRecord, name: &str| self.volume_values(it, name);
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|volume| self.volume_to_wire(volume));
        Ok(WireValue::structure()
            .with("Volumes", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
