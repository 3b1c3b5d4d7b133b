//! Block devices of instances: the volumes that are launched with an instance, and what becomes of them at its end.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::catalogue_answers::root_device_name;
use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::Ec2Instance;
use crate::launch_spec::LaunchSpec;
use crate::listing::refuse_others;
use crate::storage_records::{RegionStorage, VolumeAttachment, VolumeRecord};

/// The size, in GiB, of a root volume for which the user gives no size.
const ROOT_GIB: i64 = 8;

static NO_STORAGE: RegionStorage = RegionStorage::empty();

/// The volume of a block device that a launch names; `None`: the launch leaves the device out.
///
/// # Errors
///
/// `MissingParameter` for a device without a volume; `UnsupportedOperation` for instance store volumes.
fn ebs_of(device: &WireValue) -> Result<Option<&WireValue>, ApiError> {
    if device.member("NoDevice").is_some() {
        return Ok(None);
    }
    refuse_others("BlockDeviceMappings", device, &["DeviceName", "Ebs", "NoDevice"])?;
    let Some(ebs) = device.member("Ebs") else {
        let text = "The request must contain the parameter ebs";
        return Err(ApiError::new("MissingParameter", text));
    };
    let played = [
        "DeleteOnTermination",
        "Iops",
        "SnapshotId",
        "VolumeSize",
        "VolumeType",
        "KmsKeyId",
        "Throughput",
        "Encrypted",
    ];
    refuse_others("BlockDeviceMappings.Ebs", ebs, &played)?;
    Ok(Some(ebs))
}

/// A `CreateVolume` input with the properties of a launch's volume, which is of the type gp3 and, as a root volume, of
/// [`ROOT_GIB`] if the launch does not say otherwise.
fn as_new_volume(ebs: &WireValue, is_root: bool) -> WireValue {
    let mut input = WireValue::structure();
    for (name, value) in ebs.members().filter(|(name, _)| *name != "DeleteOnTermination") {
        let name = if name == "VolumeSize" { "Size" } else { name };
        input.set(name.to_owned(), value.clone());
    }
    if is_root && input.member("Size").is_none() && input.member("SnapshotId").is_none() {
        input.set("Size", ROOT_GIB);
    }
    if input.member("VolumeType").is_none() {
        input.set("VolumeType", "gp3");
    }
    input
}

impl Ec2Instance {
    /// The name of the root device: the first device that the launch names, or the image's.
    pub(crate) fn device_name(&self) -> &str {
        let of_image = root_device_name(self.has_amazon_image);
        self.spec.devices.first().and_then(|device| device.text("DeviceName")).unwrap_or(of_image)
    }

    /// The id of the root volume.
    fn root_volume_id(&self) -> String {
        format!("vol-{}", self.id.trim_start_matches("i-"))
    }
}

impl ApiDesk {
    /// The volumes of an account in a region.
    pub(crate) fn storage(&self, scope: &CallScope) -> &RegionStorage {
        self.storages.get(scope).unwrap_or(&NO_STORAGE)
    }

    pub(crate) fn storage_mut(&mut self, scope: &CallScope) -> &mut RegionStorage {
        self.storages.entry(scope.clone()).or_default()
    }

    /// Checks the block devices of a launch.
    ///
    /// # Errors
    ///
    /// The errors of CreateVolume; `UnsupportedOperation` for a device that is not supported.
    pub(crate) fn check_devices(
        &self,
        scope: &CallScope,
        spec: &LaunchSpec,
    ) -> Result<(), ApiError> {
        let mut is_root = true;
        for device in &spec.devices {
            let Some(ebs) = ebs_of(device)? else { continue };
            let input = as_new_volume(ebs, std::mem::take(&mut is_root));
            self.new_volume(scope, String::new(), String::new(), &input)?;
        }
        Ok(())
    }

    /// Creates the volumes of a new instance, and attaches them.
    pub(crate) fn begin_volumes(&mut self, index: usize) {
        let Some(it) = self.instances.get(index) else { return };
        let (scope, spec) = (it.scope.clone(), it.spec.clone());
        let (id, zone) = (it.id.clone(), it.pool.zone.clone());
        let (root, root_device) = (it.root_volume_id(), it.device_name().to_owned());
        let nothing = WireValue::structure();
        let named = spec.devices.iter().filter_map(|device| ebs_of(device).ok().flatten());
        let mut wanted: Vec<(String, &WireValue)> = spec
            .devices
            .iter()
            .filter(|device| device.member("NoDevice").is_none())
            .map(|device| device.text("DeviceName").unwrap_or(&root_device).to_owned())
            .zip(named)
            .collect();
        if spec.devices.is_empty() {
            wanted.push((root_device, &nothing));
        }
        let mut numbers = Vec::with_capacity(wanted.len());
        for (place, (device, ebs)) in wanted.into_iter().enumerate() {
            let input = as_new_volume(ebs, place == 0);
            let volume_id = if place == 0 { root.clone() } else { self.new_id("vol") };
            // It was checked before the launch.
            let Ok(volume) = self.new_volume(&scope, volume_id, zone.clone(), &input) else {
                continue;
            };
            let attachment = VolumeAttachment {
                instance: id.clone(),
                device,
                since: self.now,
                ends_with_instance: ebs.flag("DeleteOnTermination").unwrap_or(place == 0),
            };
            let tags = spec.volume_tags.clone();
            let volume = VolumeRecord { attachments: vec![attachment], tags, ..volume };
            numbers.push(self.storage_mut(&scope).add(volume));
        }
        if let Some(it) = self.instances.get_mut(index) {
            it.volumes = numbers;
        }
    }

    /// Detaches the volumes of an instance that is gone, and deletes those that end with it.
    pub(crate) fn end_volumes(&mut self, index: usize) {
        let Some(it) = self.instances.get_mut(index) else { return };
        let (scope, id) = (it.scope.clone(), it.id.clone());
        let numbers = std::mem::take(&mut it.volumes);
        let storage = self.storage_mut(&scope);
        for number in numbers {
            let Some(volume) = storage.volumes.get_mut(&number) else { continue };
            let ends =
                volume.attachments.iter().any(|at| at.instance == id && at.ends_with_instance);
            volume.attachments.retain(|at| at.instance != id);
            if ends && volume.attachments.is_empty() {
                storage.remove(number);
            }
        }
    }

    /// Moves the volumes of an instance that no client knows of yet to another zone.
    pub(crate) fn move_volumes(&mut self, index: usize, zone: &str) {
        let Some(it) = self.instances.get(index) else { return };
        let (scope, numbers) = (it.scope.clone(), it.volumes.clone());
        let storage = self.storage_mut(&scope);
        for number in numbers {
            if let Some(volume) = storage.volumes.get_mut(&number) {
                zone.clone_into(&mut volume.zone);
            }
        }
    }

    /// The attached volumes of an instance, each with its attachment.
    pub(crate) fn volumes_of<'a>(
        &'a self,
        it: &'a Ec2Instance,
    ) -> impl Iterator<Item = (&'a VolumeRecord, &'a VolumeAttachment)> {
        let storage = self.storage(&it.scope);
        let all = it.volumes.iter().filter_map(|number| storage.volumes.get(number));
        all.filter_map(|volume| {
            let at = volume.attachments.iter().find(|at| at.instance == it.id)?;
            Some((volume, at))
        })
    }

    /// The block devices of an instance as an element of DescribeInstances' answer.
    pub(crate) fn devices_to_wire(&self, it: &Ec2Instance) -> WireValue {
        WireValue::list_of(self.volumes_of(it).map(|(volume, at)| {
            let ebs = WireValue::structure()
                .with("AttachTime", self.instant(at.since))
                .with("DeleteOnTermination", at.ends_with_instance)
                .with("Status", "attached")
                .with("VolumeId", volume.id.as_str());
            WireValue::structure().with("DeviceName", at.device.as_str()).with("Ebs", ebs)
        }))
    }

    /// The block devices that a ModifyInstanceAttribute call names: the id of each volume, and whether the volume
    /// is deleted with the instance from now on.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceAttributeValue` for a device that the instance does not have.
    pub(crate) fn changed_devices(
        &self,
        it: &Ec2Instance,
        input: &WireValue,
    ) -> Result<Vec<(String, bool)>, ApiError> {
        let mut changed = Vec::new();
        for device in input.list("BlockDeviceMappings") {
            refuse_others("BlockDeviceMappings", device, &["DeviceName", "Ebs"])?;
            let name = device.text("DeviceName").unwrap_or_default();
            let none = WireValue::structure();
            let ebs = device.member("Ebs").unwrap_or(&none);
            refuse_others("BlockDeviceMappings.Ebs", ebs, &["DeleteOnTermination", "VolumeId"])?;
            let Some((volume, _)) = self.volumes_of(it).find(|(_, at)| at.device == name) else {
                let text = format!("No device is currently mapped at {name}");
                return Err(ApiError::new("InvalidInstanceAttributeValue", text));
            };
            if let Some(ends) = ebs.flag("DeleteOnTermination") {
                changed.push((volume.id.clone(), ends));
            }
        }
        Ok(changed)
    }

    /// Sets whether volumes are deleted with an instance.
    pub(crate) fn set_devices(&mut self, scope: &CallScope, id: &str, changed: &[(String, bool)]) {
        let storage = self.storage_mut(scope);
        for (volume, ends) in changed {
            let Some(volume) = storage.volume_mut(volume) else { continue };
            for at in volume.attachments.iter_mut().filter(|at| at.instance == id) {
                at.ends_with_instance = *ends;
            }
        }
    }
}
