//! Snapshots of volumes, which are complete at once: CreateSnapshot, CreateSnapshots, CopySnapshot, DeleteSnapshot,
//! DescribeSnapshots.

use std::collections::BTreeSet;

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network_records::ResourceTags;
use crate::resource_tags::{set_tags, tags_for, tags_to_wire};
use crate::storage::volumes::volume_not_found;
use crate::storage_records::{SnapshotRecord, VolumeRecord};

const FILTERS: [&str; 14] = [
    "snapshot-id",
    "volume-id",
    "volume-size",
    "description",
    "encrypted",
    "kms-key-id",
    "owner-id",
    "owner-alias",
    "progress",
    "start-time",
    "status",
    "storage-tier",
    "tag-key",
    "tag-value",
];

pub(super) fn snapshot_not_found(id: &str) -> ApiError {
    ApiError::new("InvalidSnapshot.NotFound", format!("The snapshot '{id}' does not exist."))
}

impl ApiDesk {
    fn snapshot_values(
        &self,
        scope: &CallScope,
        snapshot: &SnapshotRecord,
        name: &str,
    ) -> Option<Vec<String>> {
        let one = |value: &str| Some(vec![value.to_owned()]);
        match name {
            "snapshot-id" => one(&snapshot.id),
            "volume-id" => one(&snapshot.volume),
            "volume-size" => one(&snapshot.size_gib.to_string()),
            "description" => one(&snapshot.description),
            "encrypted" => one(&snapshot.kms_key.is_some().to_string()),
            "kms-key-id" => Some(snapshot.kms_key.iter().cloned().collect()),
            "owner-id" => one(&account_number(&scope.account)),
            "owner-alias" => Some(Vec::new()),
            "progress" => one("100%"),
            "start-time" => one(&self.instant_text(snapshot.started)),
            "status" => one("completed"),
            "storage-tier" => one("standard"),
            _ => tag_values(&snapshot.tags, name),
        }
    }

    fn snapshot_to_wire(&self, scope: &CallScope, snapshot: &SnapshotRecord) -> WireValue {
        WireValue::structure()
            .with("SnapshotId", snapshot.id.as_str())
            .with("VolumeId", snapshot.volume.as_str())
            .with("VolumeSize", snapshot.size_gib)
            .with("Description", snapshot.description.as_str())
            .with("Encrypted", snapshot.kms_key.is_some())
            .with("OwnerId", account_number(&scope.account))
            .with("Progress", "100%")
            .with("StartTime", self.instant(snapshot.started))
            .with("State", "completed")
            .with("Tags", tags_to_wire(&snapshot.tags))
            .with_some("KmsKeyId", snapshot.kms_key.as_deref())
    }

    /// The part of a snapshot that DescribeSnapshots writes and the answer of CreateSnapshots does not have otherwise.
    fn described_snapshot(&self, scope: &CallScope, snapshot: &SnapshotRecord) -> WireValue {
        self.snapshot_to_wire(scope, snapshot).with("StorageTier", "standard")
    }

    fn new_snapshot(
        &mut self,
        volume: &VolumeRecord,
        description: &str,
        tags: ResourceTags,
    ) -> SnapshotRecord {
        SnapshotRecord {
            id: self.new_id("snap"),
            volume: volume.id.clone(),
            size_gib: volume.traits.size_gib,
            description: description.to_owned(),
            kms_key: volume.kms_key.clone(),
            started: self.now,
            is_public: false,
            users: BTreeSet::new(),
            tags,
        }
    }

    pub(crate) fn create_snapshot(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["VolumeId", "Description", "TagSpecifications", "DryRun"];
        refuse_others("CreateSnapshot", input, &played)?;
        let id = input.text("VolumeId").unwrap_or_default();
        let volume = self.storage(scope).volume(id).ok_or_else(|| volume_not_found(id))?.clone();
        let description = input.text("Description").unwrap_or_default();
        let snapshot = self.new_snapshot(&volume, description, tags_for(input, "snapshot"));
        let written = self.snapshot_to_wire(scope, &snapshot);
        self.storage_mut(scope).snapshots.push(snapshot);
        Ok(PendingAnswer::Ready(written))
    }

    /// Creates a snapshot of each volume of an instance.
    pub(crate) fn create_snapshots(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played =
            ["InstanceSpecification", "Description", "TagSpecifications", "CopyTagsFromSource"];
        refuse_others("CreateSnapshots", input, &[&played[..], &["DryRun"]].concat())?;
        let none = WireValue::structure();
        let wanted = input.member("InstanceSpecification").unwrap_or(&none);
        let played = ["InstanceId", "ExcludeBootVolume", "ExcludeDataVolumeIds"];
        refuse_others("InstanceSpecification", wanted, &played)?;
        let index = self.instance_of(scope, wanted.text("InstanceId").unwrap_or_default())?;
        let excluded = wanted.texts("ExcludeDataVolumeIds");
        let no_root = wanted.flag("ExcludeBootVolume") == Some(true);
        let Some(it) = self.instances.get(index) else { return Err(volume_not_found("")) };
        let root = it.device_name();
        let volumes: Vec<VolumeRecord> = self
            .volumes_of(it)
            .filter(|(_, at)| !(no_root && at.device == root))
            .map(|(volume, _)| volume)
            .filter(|volume| !excluded.contains(&volume.id.as_str()))
            .cloned()
            .collect();
        let description = input.text("Description").unwrap_or_default();
        let copies = input.text("CopyTagsFromSource") == Some("volume");
        let mut written = Vec::new();
        for volume in volumes {
            let mut tags = if copies { volume.tags.clone() } else { Vec::new() };
            set_tags(&mut tags, &tags_for(input, "snapshot"));
            let snapshot = self.new_snapshot(&volume, description, tags);
            let mut wire = self.snapshot_to_wire(scope, &snapshot);
            if let WireValue::Structure(members) = &mut wire {
                members.remove("KmsKeyId");
            }
            written.push(wire);
            self.storage_mut(scope).snapshots.push(snapshot);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Snapshots", written)))
    }

    pub(crate) fn copy_snapshot(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "SourceRegion",
            "SourceSnapshotId",
            "Description",
            "Encrypted",
            "KmsKeyId",
            "TagSpecifications",
            "DestinationRegion",
            "PresignedUrl",
            "DryRun",
        ];
        refuse_others("CopySnapshot", input, &played)?;
        let region = input.text("SourceRegion").unwrap_or(&scope.region).to_owned();
        let from = CallScope { account: scope.account.clone(), region };
        let id = input.text("SourceSnapshotId").unwrap_or_default();
        let source = self.storage(&from).snapshot(id).ok_or_else(|| snapshot_not_found(id))?;
        let mut copy = source.clone();
        // A key is of one region.
        let is_encrypted = copy.kms_key.is_some() && from.region != scope.region;
        let of_source = copy.kms_key.take().filter(|_| !is_encrypted);
        let mut wanted = input.clone();
        if is_encrypted {
            wanted.set("Encrypted", true);
        }
        copy.kms_key = self.key_of(scope, &wanted, of_source.as_ref())?;
        copy.id = self.new_id("snap");
        copy.started = self.now;
        (copy.is_public, copy.users, copy.tags) =
            (false, BTreeSet::new(), tags_for(input, "snapshot"));
        input.text("Description").unwrap_or_default().clone_into(&mut copy.description);
        let answer = WireValue::structure()
            .with("SnapshotId", copy.id.as_str())
            .with("Tags", tags_to_wire(&copy.tags));
        self.storage_mut(scope).snapshots.push(copy);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn delete_snapshot(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteSnapshot", input, &["SnapshotId", "DryRun"])?;
        let id = input.text("SnapshotId").unwrap_or_default();
        let storage = self.storage_mut(scope);
        storage.snapshot(id).ok_or_else(|| snapshot_not_found(id))?;
        storage.snapshots.retain(|snapshot| snapshot.id != id);
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn describe_snapshots(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["SnapshotIds", "OwnerIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSnapshots", input, &played)?;
        let (named, storage) = (input.texts("SnapshotIds"), self.storage(scope));
        if let Some(id) = named.iter().find(|id| storage.snapshot(id).is_none()) {
            return Err(snapshot_not_found(id));
        }
        // Those of other accounts and of AWS are not known here.
        let (owners, own) = (input.texts("OwnerIds"), account_number(&scope.account));
        let is_own = owners.is_empty() || owners.iter().any(|it| *it == "self" || *it == own);
        let is_named =
            |it: &&SnapshotRecord| is_own && (named.is_empty() || named.contains(&it.id.as_str()));
        let found = storage.snapshots.iter().filter(is_named).collect();
        let values = |it: &&SnapshotRecord, name: &str| self.snapshot_values(scope, it, name);
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|snapshot| self.described_snapshot(scope, snapshot));
        Ok(WireValue::structure()
            .with("Snapshots", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
