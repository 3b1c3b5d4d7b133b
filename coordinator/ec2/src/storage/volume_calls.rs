//! CreateVolume, DeleteVolume, AttachVolume, DetachVolume.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::{Ec2Instance, InstanceStage};
use crate::listing::refuse_others;
use crate::names::{account_number, default_uuid};
use crate::resource_tags::tags_for;
use crate::storage::volumes::volume_not_found;
use crate::storage_records::{VolumeAttachment, VolumeRecord, VolumeTraits};

/// Types whose operations per second the user chooses and has to give.
pub(super) const PROVISIONED: [&str; 2] = ["io1", "io2"];
/// The least and the greatest value that a property may have.
type ValueRange = (i64, i64);

/// Types of volumes, with the sizes that they have in GiB and the operations per second that a user may choose; 0, 0: none.
const KINDS: [(&str, ValueRange, ValueRange); 7] = [
    ("gp2", (1, 16_384), (0, 0)),
    ("gp3", (1, 65_536), (3_000, 80_000)),
    ("io1", (4, 16_384), (100, 64_000)),
    ("io2", (4, 65_536), (100, 256_000)),
    ("sc1", (125, 16_384), (0, 0)),
    ("st1", (125, 16_384), (0, 0)),
    ("standard", (1, 1_024), (0, 0)),
];
/// The MiB per second that a user may choose for a gp3 volume.
const THROUGHPUT: ValueRange = (125, 2_000);

/// Fails for a property of a volume that is too small or too great.
fn check_range(what: &str, said: i64, (least, most): ValueRange) -> Result<(), ApiError> {
    let text = if said < least {
        format!("Volume {what} of {said} is too low; minimum is {least}.")
    } else if said > most {
        format!("Volume {what} of {said} is too high; maximum is {most}.")
    } else {
        return Ok(());
    };
    Err(ApiError::new("InvalidParameterValue", text))
}

/// Fails unless the properties of a volume go together.
///
/// # Errors
///
/// `InvalidParameterDependency`, `InvalidParameterValue`, `UnknownVolumeType`.
pub(super) fn check_traits(traits: &VolumeTraits, has_throughput: bool) -> Result<(), ApiError> {
    let depends = |name: &str| {
        let text = format!("The parameter {name} is not supported for {} volumes.", traits.kind);
        ApiError::new("InvalidParameterDependency", text)
    };
    if traits.is_multi_attach && !PROVISIONED.contains(&traits.kind.as_str()) {
        return Err(depends("MultiAttachEnabled"));
    }
    let Some((_, sizes, iops)) = KINDS.iter().find(|kind| kind.0 == traits.kind) else {
        let text = format!("Unsupported volume type '{}' for volume creation.", traits.kind);
        return Err(ApiError::new("UnknownVolumeType", text));
    };
    if has_throughput && traits.kind != "gp3" {
        return Err(depends("Throughput"));
    }
    check_range("size", traits.size_gib, *sizes)?;
    if let Some(said) = traits.iops.filter(|_| iops.1 > 0) {
        check_range("iops", said, *iops)?;
    }
    traits.throughput.map_or(Ok(()), |said| check_range("throughput", said, THROUGHPUT))
}

/// Operations per second of a volume for which the user gives no number.
pub(super) fn usual_iops(kind: &str, size_gib: i64) -> Option<i64> {
    match kind {
        "gp2" => Some(size_gib.saturating_mul(3).clamp(100, 16_000)),
        "gp3" => Some(3_000),
        _ => None,
    }
}

impl ApiDesk {
    /// The key that encrypts what a call creates; `None`: it is not encrypted.
    ///
    /// # Errors
    ///
    /// `InvalidParameterDependency` for a key without encryption.
    pub(super) fn key_of(
        &self,
        scope: &CallScope,
        input: &WireValue,
        of_source: Option<&String>,
    ) -> Result<Option<String>, ApiError> {
        let key = input.text("KmsKeyId").filter(|key| !key.is_empty()).map(str::to_owned);
        if key.is_some() && input.flag("Encrypted") == Some(false) {
            let text = "The parameter KmsKeyId requires the parameter Encrypted to be set.";
            return Err(ApiError::new("InvalidParameterDependency", text));
        }
        let is_encrypted = key.is_some() || input.flag("Encrypted") == Some(true);
        let default = || {
            let account = account_number(&scope.account);
            let key = default_uuid(self.seed, "ebs key", &format!("{account} {}", scope.region));
            format!("arn:aws:kms:{}:{account}:key/{key}", scope.region)
        };
        Ok(key.or_else(|| of_source.cloned()).or_else(|| is_encrypted.then(default)))
    }

    /// The volume that CreateVolume creates from an input.
    ///
    /// # Errors
    ///
    /// EC2's errors for properties that don't go together.
    pub(super) fn new_volume(
        &self,
        scope: &CallScope,
        id: String,
        zone: String,
        input: &WireValue,
    ) -> Result<VolumeRecord, ApiError> {
        let missing = |text: &str| ApiError::new("MissingParameter", text);
        let source = match input.text("SnapshotId").filter(|id| !id.is_empty()) {
            Some(id) => Some(
                self.storage(scope)
                    .snapshot(id)
                    .ok_or_else(|| super::snapshots::snapshot_not_found(id))?,
            ),
            None => None,
        };
        let size = input.integer("Size").or(source.map(|source| source.size_gib));
        let size_gib =
            size.ok_or_else(|| missing("The request must contain the parameter size/snapshot"))?;
        if source.is_some_and(|source| size_gib < source.size_gib) {
            let text = format!("Volume of size {size_gib}GB is smaller than its snapshot.");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let kind = input.text("VolumeType").filter(|kind| !kind.is_empty()).unwrap_or("gp2");
        let (iops, throughput) = (input.integer("Iops"), input.integer("Throughput"));
        let traits = VolumeTraits {
            size_gib,
            kind: kind.to_owned(),
            iops: iops.or_else(|| usual_iops(kind, size_gib)),
            throughput: throughput.or_else(|| (kind == "gp3").then_some(125)),
            is_multi_attach: input.flag("MultiAttachEnabled") == Some(true),
        };
        check_traits(&traits, throughput.is_some())?;
        if PROVISIONED.contains(&kind) && iops.is_none() {
            return Err(missing(&format!(
                "The parameter iops must be specified for {kind} volumes."
            )));
        }
        let of_source = source.and_then(|source| source.kms_key.as_ref());
        let kms_key = self.key_of(scope, input, of_source)?;
        Ok(VolumeRecord {
            id,
            zone,
            traits,
            kms_key,
            snapshot: source.map(|source| source.id.clone()),
            created: self.now,
            attachments: Vec::new(),
            tags: tags_for(input, "volume"),
        })
    }

    pub(crate) fn create_volume(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "AvailabilityZone",
            "ClientToken",
            "DryRun",
            "Encrypted",
            "Iops",
            "KmsKeyId",
            "MultiAttachEnabled",
            "Size",
            "SnapshotId",
            "TagSpecifications",
            "Throughput",
            "VolumeType",
        ];
        refuse_others("CreateVolume", input, &played)?;
        let zone = input.text("AvailabilityZone").unwrap_or_default();
        if !self.market.zones(&scope.region).iter().any(|own| own == zone) {
            let text = format!("The zone '{zone}' does not exist.");
            return Err(ApiError::new("InvalidZone.NotFound", text));
        }
        // It has its id once it is sure that the volume is created.
        self.new_volume(scope, String::new(), String::new(), input)?;
        let id = self.new_id("vol");
        let volume = self.new_volume(scope, id, zone.to_owned(), input)?;
        let written = self.volume_to_wire(&volume);
        self.storage_mut(scope).add(volume);
        Ok(PendingAnswer::Ready(written))
    }

    pub(crate) fn delete_volume(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteVolume", input, &["VolumeId", "DryRun"])?;
        let id = input.text("VolumeId").unwrap_or_default();
        let storage = self.storage_mut(scope);
        let volume = storage.volume(id).ok_or_else(|| volume_not_found(id))?;
        if let Some(at) = volume.attachments.first() {
            let text = format!("Volume {id} is currently attached to {}", at.instance);
            return Err(ApiError::new("VolumeInUse", text));
        }
        if let Some(number) = storage.number_of(id) {
            storage.remove(number);
        }
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn attach_volume(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("AttachVolume", input, &["VolumeId", "InstanceId", "Device", "DryRun"])?;
        let id = input.text("VolumeId").unwrap_or_default();
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let device = input.text("Device").unwrap_or_default().to_owned();
        let storage = self.storage(scope);
        let none = || volume_not_found(id);
        let number = storage.number_of(id).ok_or_else(none)?;
        let (volume, Some(it)) = (storage.volume(id).ok_or_else(none)?, self.instances.get(index))
        else {
            return Err(none());
        };
        self.check_attachment(volume, it, &device)?;
        let attachment = VolumeAttachment {
            instance: it.id.clone(),
            device,
            since: self.now,
            ends_with_instance: false,
        };
        let answer = self.attachment_to_wire(id, &attachment).with("State", "attaching");
        if let Some(volume) = self.storage_mut(scope).volumes.get_mut(&number) {
            volume.attachments.push(attachment);
        }
        if let Some(it) = self.instances.get_mut(index) {
            it.volumes.push(number);
        }
        Ok(PendingAnswer::Ready(answer))
    }

    /// Fails unless a volume can be attached to an instance as this device.
    fn check_attachment(
        &self,
        volume: &VolumeRecord,
        it: &Ec2Instance,
        device: &str,
    ) -> Result<(), ApiError> {
        let id = &volume.id;
        if !matches!(it.stage, InstanceStage::Running | InstanceStage::Stopped) {
            let text = format!("Instance '{}' is not 'running'.", it.id);
            return Err(ApiError::new("IncorrectState", text));
        }
        let is_attached = !volume.attachments.is_empty() && !volume.traits.is_multi_attach
            || volume.attachments.iter().any(|at| at.instance == it.id);
        if is_attached {
            let text = format!("{id} is already attached to an instance");
            return Err(ApiError::new("VolumeInUse", text));
        }
        if volume.zone != it.pool.zone {
            let text = format!(
                "The volume '{id}' is not in the same availability zone as instance '{}'",
                it.id
            );
            return Err(ApiError::new("InvalidVolume.ZoneMismatch", text));
        }
        if self.volumes_of(it).any(|(_, at)| at.device == device) {
            let text = format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            );
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        Ok(())
    }

    pub(crate) fn detach_volume(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["VolumeId", "InstanceId", "Device", "Force", "DryRun"];
        refuse_others("DetachVolume", input, &played)?;
        let id = input.text("VolumeId").unwrap_or_default();
        let text = |name: &str| input.text(name).filter(|text| !text.is_empty());
        let (instance, device) = (text("InstanceId"), text("Device"));
        if let Some(instance) = instance {
            self.instance_of(scope, instance)?;
        }
        let storage = self.storage(scope);
        let volume = storage.volume(id).ok_or_else(|| volume_not_found(id))?;
        let is_meant = |at: &&VolumeAttachment| {
            instance.is_none_or(|id| at.instance == id) && device.is_none_or(|it| at.device == it)
        };
        let Some(at) = volume.attachments.iter().find(is_meant).cloned() else {
            let to = instance.map_or("an instance".to_owned(), |id| format!("instance {id}"));
            let device = device.map(|device| format!(" as device {device}")).unwrap_or_default();
            let text = format!("The volume {id} is not attached to {to}{device}");
            return Err(ApiError::new("InvalidAttachment.NotFound", text));
        };
        let index = self.instance_of(scope, &at.instance)?;
        if let Some(it) = self.instances.get(index)
            && it.device_name() == at.device
            && it.stage != InstanceStage::Stopped
        {
            let text = format!("Unable to detach root volume '{id}' from instance '{}'", it.id);
            return Err(ApiError::new("OperationNotPermitted", text));
        }
        let answer = self.attachment_to_wire(id, &at).with("State", "detaching");
        let storage = self.storage_mut(scope);
        let number = storage.number_of(id);
        if let Some(volume) = storage.volume_mut(id) {
            volume.attachments.retain(|own| own.instance != at.instance);
        }
        if let Some(it) = self.instances.get_mut(index) {
            it.volumes.retain(|own| Some(*own) != number);
        }
        Ok(PendingAnswer::Ready(answer))
    }
}
