//! ModifyVolume, whose changes are complete at once, and DescribeVolumesModifications.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::storage::volume_calls::{PROVISIONED, check_traits, usual_iops};
use crate::storage::volumes::volume_not_found;
use crate::storage_records::{VolumeChange, VolumeTraits};

const FILTERS: [&str; 8] = [
    "volume-id",
    "modification-state",
    "original-size",
    "target-size",
    "original-volume-type",
    "target-volume-type",
    "original-iops",
    "target-iops",
];

impl VolumeChange {
    fn filter_values(&self, name: &str) -> Option<Vec<String>> {
        let one = |value: String| Some(vec![value]);
        match name {
            "volume-id" => one(self.volume.clone()),
            "modification-state" => one("completed".to_owned()),
            "original-size" => one(self.before.size_gib.to_string()),
            "target-size" => one(self.after.size_gib.to_string()),
            "original-volume-type" => one(self.before.kind.clone()),
            "target-volume-type" => one(self.after.kind.clone()),
            "original-iops" => Some(self.before.iops.iter().map(i64::to_string).collect()),
            "target-iops" => Some(self.after.iops.iter().map(i64::to_string).collect()),
            _ => None,
        }
    }

    fn to_wire(&self, desk: &ApiDesk) -> WireValue {
        let mut wire = WireValue::structure()
            .with("VolumeId", self.volume.as_str())
            .with("ModificationState", "completed")
            .with("Progress", 100_i64)
            .with("StartTime", desk.instant(self.at))
            .with("EndTime", desk.instant(self.at));
        for (when, traits) in [("Original", &self.before), ("Target", &self.after)] {
            let VolumeTraits { size_gib, kind, iops, throughput, is_multi_attach } = traits;
            wire.set(format!("{when}Size"), *size_gib);
            wire.set(format!("{when}VolumeType"), kind.as_str());
            wire.set(format!("{when}MultiAttachEnabled"), *is_multi_attach);
            if let Some(iops) = iops {
                wire.set(format!("{when}Iops"), *iops);
            }
            if let Some(throughput) = throughput {
                wire.set(format!("{when}Throughput"), *throughput);
            }
        }
        wire
    }
}

impl ApiDesk {
    pub(crate) fn modify_volume(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "VolumeId",
            "DryRun",
            "Size",
            "VolumeType",
            "Iops",
            "Throughput",
            "MultiAttachEnabled",
        ];
        refuse_others("ModifyVolume", input, &played)?;
        let id = input.text("VolumeId").unwrap_or_default();
        let at = self.now;
        let volume = self.storage_mut(scope).volume_mut(id).ok_or_else(|| volume_not_found(id))?;
        let before = volume.traits.clone();
        // Another type has its own usual speed.
        let kind = input.text("VolumeType").unwrap_or(&before.kind);
        let (keeps_kind, size_gib) =
            (kind == before.kind, input.integer("Size").unwrap_or(before.size_gib));
        let after = VolumeTraits {
            size_gib,
            kind: kind.to_owned(),
            iops: input
                .integer("Iops")
                .or(before.iops.filter(|_| keeps_kind && kind != "gp2"))
                .or_else(|| usual_iops(kind, size_gib))
                // The default of a change to another type, by ModifyVolume's page.
                .or_else(|| PROVISIONED.contains(&kind).then_some(3_000)),
            throughput: input
                .integer("Throughput")
                .or(before.throughput.filter(|_| keeps_kind))
                .or_else(|| (kind == "gp3").then_some(125)),
            is_multi_attach: input.flag("MultiAttachEnabled").unwrap_or(before.is_multi_attach),
        };
        if after.size_gib < before.size_gib {
            let text = "New size cannot be smaller than existing size";
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        check_traits(&after, input.integer("Throughput").is_some())?;
        volume.traits = after.clone();
        let change = VolumeChange { volume: id.to_owned(), at, before, after };
        let written = change.to_wire(self);
        self.storage_mut(scope).changes.push(change);
        Ok(PendingAnswer::Ready(WireValue::structure().with("VolumeModification", written)))
    }

    pub(crate) fn describe_modifications(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["VolumeIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeVolumesModifications", input, &played)?;
        let (named, storage) = (input.texts("VolumeIds"), self.storage(scope));
        if let Some(id) = named.iter().find(|id| storage.volume(id).is_none()) {
            return Err(volume_not_found(id));
        }
        let is_named = |it: &&VolumeChange| named.is_empty() || named.contains(&it.volume.as_str());
        let found = storage.changes.iter().filter(is_named).collect();
        let values = |change: &&VolumeChange, name: &str| change.filter_values(name);
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (1, 500))?;
        let written = page.into_iter().map(|change| change.to_wire(self));
        Ok(WireValue::structure()
            .with("VolumesModifications", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
