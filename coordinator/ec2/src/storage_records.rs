//! Volumes and snapshots of an account in a region, kept between calls.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::Time;

use crate::network_records::ResourceTags;

/// Attachment of a volume to an instance.
#[derive(Clone, Debug)]
pub(crate) struct VolumeAttachment {
    /// Id of the instance.
    pub(crate) instance: String,
    /// Name of the device, like `/dev/sdh`.
    pub(crate) device: String,
    pub(crate) since: Time,
    /// Whether the volume is deleted when the instance is terminated.
    pub(crate) ends_with_instance: bool,
}

/// The properties of a volume that ModifyVolume changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VolumeTraits {
    pub(crate) size_gib: i64,
    /// EC2's name of the volume type, like `gp3`.
    pub(crate) kind: String,
    /// Operations per second; `None`: volumes of this type have no such figure.
    pub(crate) iops: Option<i64>,
    /// Throughput in MiB per second; `None`: volumes of this type have no such figure.
    pub(crate) throughput: Option<i64>,
    pub(crate) is_multi_attach: bool,
}

/// A volume.
#[derive(Clone, Debug)]
pub(crate) struct VolumeRecord {
    pub(crate) id: String,
    pub(crate) zone: String,
    pub(crate) traits: VolumeTraits,
    /// ARN or id of the key that encrypts the volume; `None`: the volume is not encrypted.
    pub(crate) kms_key: Option<String>,
    /// Id of the snapshot that the volume was created from.
    pub(crate) snapshot: Option<String>,
    pub(crate) created: Time,
    /// Attachments, oldest first; only a multi-attach volume has more than one.
    pub(crate) attachments: Vec<VolumeAttachment>,
    pub(crate) tags: ResourceTags,
}

impl VolumeRecord {
    /// EC2's name of the volume's state.
    pub(crate) const fn state(&self) -> &'static str {
        if self.attachments.is_empty() { "available" } else { "in-use" }
    }
}

/// A change of a volume by ModifyVolume.
#[derive(Clone, Debug)]
pub(crate) struct VolumeChange {
    pub(crate) volume: String,
    pub(crate) at: Time,
    pub(crate) before: VolumeTraits,
    pub(crate) after: VolumeTraits,
}

/// A snapshot of a volume.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotRecord {
    pub(crate) id: String,
    pub(crate) volume: String,
    pub(crate) size_gib: i64,
    pub(crate) description: String,
    /// ARN or id of the key that encrypts the snapshot; `None`: the snapshot is not encrypted.
    pub(crate) kms_key: Option<String>,
    pub(crate) started: Time,
    /// Whether every account may create volumes from the snapshot.
    pub(crate) is_public: bool,
    /// Accounts that may create volumes from the snapshot.
    pub(crate) users: BTreeSet<String>,
    pub(crate) tags: ResourceTags,
}

/// The volumes and snapshots of an account in a region.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionStorage {
    /// Volumes by the order of their creation.
    pub(crate) volumes: BTreeMap<u64, VolumeRecord>,
    numbers: BTreeMap<String, u64>,
    next_number: u64,
    pub(crate) changes: Vec<VolumeChange>,
    pub(crate) snapshots: Vec<SnapshotRecord>,
}

impl RegionStorage {
    /// A region without any volume.
    pub(crate) const fn empty() -> Self {
        Self {
            volumes: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 0,
            changes: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// Adds a volume; returns its number.
    pub(crate) fn add(&mut self, volume: VolumeRecord) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(volume.id.clone(), number);
        self.volumes.insert(number, volume);
        number
    }

    pub(crate) fn remove(&mut self, number: u64) {
        if let Some(volume) = self.volumes.remove(&number) {
            self.numbers.remove(&volume.id);
        }
    }

    /// The number of the volume with this id.
    pub(crate) fn number_of(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    pub(crate) fn volume(&self, id: &str) -> Option<&VolumeRecord> {
        self.volumes.get(self.numbers.get(id)?)
    }

    pub(crate) fn volume_mut(&mut self, id: &str) -> Option<&mut VolumeRecord> {
        self.volumes.get_mut(self.numbers.get(id)?)
    }

    pub(crate) fn snapshot(&self, id: &str) -> Option<&SnapshotRecord> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id)
    }

    pub(crate) fn snapshot_mut(&mut self, id: &str) -> Option<&mut SnapshotRecord> {
        self.snapshots.iter_mut().find(|snapshot| snapshot.id == id)
    }
}
