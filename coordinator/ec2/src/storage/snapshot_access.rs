//! Permissions to create volumes from a snapshot: DescribeSnapshotAttribute, ModifySnapshotAttribute.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::listing::refuse_others;
use crate::storage::snapshots::snapshot_not_found;

const PERMISSION: &str = "createVolumePermission";

impl ApiDesk {
    pub(crate) fn describe_snapshot_attribute(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("DescribeSnapshotAttribute", input, &["SnapshotId", "Attribute", "DryRun"])?;
        let id = input.text("SnapshotId").unwrap_or_default();
        let snapshot = self.storage(scope).snapshot(id).ok_or_else(|| snapshot_not_found(id))?;
        let answer = WireValue::structure().with("SnapshotId", id);
        if input.text("Attribute") != Some(PERMISSION) {
            return Ok(answer.with("ProductCodes", WireValue::List(Vec::new())));
        }
        let group = snapshot.is_public.then(|| WireValue::structure().with("Group", "all"));
        let user = |user: &String| WireValue::structure().with("UserId", user.as_str());
        let all = group.into_iter().chain(snapshot.users.iter().map(user));
        Ok(answer.with("CreateVolumePermissions", WireValue::list_of(all)))
    }

    pub(crate) fn modify_snapshot_attribute(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "SnapshotId",
            "Attribute",
            "OperationType",
            "GroupNames",
            "UserIds",
            "CreateVolumePermission",
            "DryRun",
        ];
        refuse_others("ModifySnapshotAttribute", input, &played)?;
        let id = input.text("SnapshotId").unwrap_or_default();
        let storage = self.storage_mut(scope);
        let snapshot = storage.snapshot_mut(id).ok_or_else(|| snapshot_not_found(id))?;
        if input.text("Attribute").is_some_and(|attribute| attribute != PERMISSION) {
            let text = "Only the attribute createVolumePermission can be modified.";
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let mut added: Vec<(Option<&str>, Option<&str>)> = Vec::new();
        let mut removed = added.clone();
        let is_removal = input.text("OperationType") == Some("remove");
        let list = if is_removal { &mut removed } else { &mut added };
        list.extend(input.texts("GroupNames").into_iter().map(|group| (Some(group), None)));
        list.extend(input.texts("UserIds").into_iter().map(|user| (None, Some(user))));
        if let Some(change) = input.member("CreateVolumePermission") {
            for (name, list) in [("Add", &mut added), ("Remove", &mut removed)] {
                let all = change.list(name).iter();
                list.extend(all.map(|one| (one.text("Group"), one.text("UserId"))));
            }
        }
        let wrong = added
            .iter()
            .chain(&removed)
            .find_map(|(group, _)| group.filter(|group| *group != "all"));
        if let Some(group) = wrong {
            let text = format!("Invalid attribute item value \"{group}\" for userGroup item type.");
            return Err(ApiError::new("InvalidAMIAttributeItemValue", text));
        }
        for (list, is_added) in [(added, true), (removed, false)] {
            for (group, user) in list {
                if group.is_some() {
                    snapshot.is_public = is_added;
                }
                match user {
                    Some(user) if is_added => {
                        snapshot.users.insert(user.to_owned());
                    }
                    Some(user) => {
                        snapshot.users.remove(user);
                    }
                    None => {}
                }
            }
        }
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }
}
