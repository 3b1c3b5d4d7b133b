//! CreateTags, DeleteTags, DescribeTags.

use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;

use crate::credit_terms::declared_by;
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::resource_tags::{check_tag_count, read_tags, reserved_key, set_tags};

/// The kind of a resource, by its id.
fn kind_of(id: &str) -> &'static str {
    match id.split_once('-').map_or("", |(prefix, _)| prefix) {
        "i" => "instance",
        "sir" => "spot-instances-request",
        "sg" => "security-group",
        "sgr" => "security-group-rule",
        "key" => "key-pair",
        "lt" => "launch-template",
        "fleet" => "fleet",
        "sfr" => "spot-fleet-request",
        "vpc" => "vpc",
        "subnet" => "subnet",
        "scr" => "subnet-cidr-reservation",
        "igw" => "internet-gateway",
        "eni" => "network-interface",
        "vol" => "volume",
        "snap" => "snapshot",
        "rtb" => "route-table",
        _ => "",
    }
}

impl ApiDesk {
    pub(crate) fn change_tags(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others(action, input, &["Resources", "Tags", "DryRun"])?;
        let tags = read_tags(input, "Tags");
        if action == "CreateTags" {
            declared_by(&tags)?;
        }
        // Deleted is a tag by its key, and only with this value where one is given.
        let with_value: Vec<bool> =
            input.list("Tags").iter().map(|tag| tag.text("Value").is_some()).collect();
        if let Some((key, _)) = tags.iter().find(|(key, _)| key.starts_with("aws:")) {
            return Err(ApiError::new("InvalidParameterValue", reserved_key(key)));
        }
        let named: Vec<String> = input.texts("Resources").into_iter().map(str::to_owned).collect();
        for id in &named {
            if self.tags_mut(scope, id)?.is_none() {
                let text = format!("The ID '{id}' is not valid");
                return Err(ApiError::new("InvalidID", text));
            }
            let own = self.tags_mut(scope, id)?.cloned().unwrap_or_default();
            let is_new = |key: &str| own.iter().all(|(known, _)| known != key);
            let new = tags.iter().filter(|(key, _)| is_new(key)).count();
            let has = own.iter().filter(|(key, _)| !key.starts_with("aws:")).count();
            if action == "CreateTags" {
                check_tag_count(has + new)?;
            }
        }
        for id in &named {
            let Some(own) = self.tags_mut(scope, id)? else { continue };
            if action == "CreateTags" {
                set_tags(own, &tags);
                continue;
            }
            if tags.is_empty() {
                own.clear();
            }
            for ((key, value), has_value) in tags.iter().zip(&with_value) {
                own.retain(|(other, text)| other != key || *has_value && text != value);
            }
        }
        for index in named.iter().filter_map(|id| self.by_id.get(id).copied()).collect::<Vec<_>>() {
            self.declare_use(index, out);
        }
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    /// The tags of a resource of the caller; `None`: resources of this kind don't exist.
    fn tags_mut(
        &mut self,
        scope: &CallScope,
        id: &str,
    ) -> Result<Option<&mut Vec<(String, String)>>, ApiError> {
        Ok(match kind_of(id) {
            "" => None,
            "instance" => {
                let index = self.instance_of(scope, id)?;
                self.instances.get_mut(index).map(|it| &mut it.tags)
            }
            "network-interface" => {
                let none = |_| {
                    let text = format!("The networkInterface ID '{id}' does not exist");
                    ApiError::new("InvalidNetworkInterfaceID.NotFound", text)
                };
                // An interface has the digits of its instance.
                let of = self.instance_of(scope, &id.replacen("eni-", "i-", 1)).map_err(none)?;
                self.instances.get_mut(of).map(|it| &mut it.spec.interface_tags)
            }
            "volume" => {
                let text = || format!("The volume '{id}' does not exist.");
                let volume = self.storage_mut(scope).volume_mut(id);
                let none = || ApiError::new("InvalidVolume.NotFound", text());
                Some(&mut volume.ok_or_else(none)?.tags)
            }
            "snapshot" => {
                let text = || format!("The snapshot '{id}' does not exist.");
                let snapshot = self.storage_mut(scope).snapshot_mut(id);
                let none = || ApiError::new("InvalidSnapshot.NotFound", text());
                Some(&mut snapshot.ok_or_else(none)?.tags)
            }
            "spot-instances-request" => {
                let index = self.request_of(scope, id)?;
                self.requests.get_mut(index).map(|it| &mut it.tags)
            }
            "key-pair" => {
                let own = self.key_pairs.iter_mut();
                let mut own = own.filter(|((owner, _), pair)| owner == scope && pair.id == id);
                own.next().map(|(_, pair)| &mut pair.tags)
            }
            "launch-template" => {
                let mut own = self.templates.iter_mut();
                own.find(|it| it.id == id && it.scope == *scope).map(|it| &mut it.tags)
            }
            "fleet" | "spot-fleet-request" => {
                let mut own = self.fleets.iter_mut();
                own.find(|it| it.id == id && it.scope == *scope).map(|it| &mut it.tags)
            }
            _ => self.network_mut(scope).tags_mut(id),
        })
    }

    pub(crate) fn describe_tags(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("DescribeTags", input, &["DryRun", "Filters", "NextToken", "MaxResults"])?;
        let mut all: Vec<(String, String, String)> = Vec::new();
        let mut add = |id: &str, tags: &[(String, String)]| {
            all.extend(tags.iter().map(|(key, value)| (id.to_owned(), key.clone(), value.clone())));
        };
        for it in self.instances_of(scope) {
            add(&it.id, &it.tags);
            add(&it.interface_id(), &it.spec.interface_tags);
        }
        let storage = self.storage(scope);
        for it in storage.volumes.values() {
            add(&it.id, &it.tags);
        }
        for it in &storage.snapshots {
            add(&it.id, &it.tags);
        }
        let own = self.requests.iter();
        for it in own.filter(|it| it.scope == *scope) {
            add(&it.id, &it.tags);
        }
        for (id, tags) in self.network(scope).all_tags() {
            add(id, tags);
        }
        for (_, pair) in self.key_pairs.iter().filter(|((owner, _), _)| owner == scope) {
            add(&pair.id, &pair.tags);
        }
        for it in self.templates.iter().filter(|it| it.scope == *scope) {
            add(&it.id, &it.tags);
        }
        for it in self.fleets.iter().filter(|it| it.scope == *scope) {
            add(&it.id, &it.tags);
        }
        let known = ["resource-id", "resource-type", "key", "value"];
        let values = |(id, key, value): &(String, String, String), name: &str| {
            let said = match name {
                "resource-id" => id.clone(),
                "resource-type" => kind_of(id).to_owned(),
                "key" => key.clone(),
                "value" => value.clone(),
                _ => return None,
            };
            Some(vec![said])
        };
        let all = filter_by(all, input, values, &known)?;
        let (page, next) = take_page(all, input, (5, 1_000))?;
        let written = page.into_iter().map(|(id, key, value)| {
            WireValue::structure()
                .with("ResourceType", kind_of(&id))
                .with("ResourceId", id)
                .with("Key", key)
                .with("Value", value)
        });
        Ok(WireValue::structure()
            .with("Tags", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
