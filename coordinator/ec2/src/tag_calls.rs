//! CreateTags, DeleteTags, DescribeTags.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::set_tags;
use crate::launch_spec::read_tags;
use crate::listing::{filter_by, refuse_others, take_page};

/// The kind of a resource, by its id.
fn kind_of(id: &str) -> &'static str {
    match id.rsplit_once('-').map_or("", |(prefix, _)| prefix) {
        "i" => "instance",
        "sir" => "spot-instances-request",
        "sg" => "security-group",
        "key" => "key-pair",
        "lt" => "launch-template",
        "fleet" => "fleet",
        "sfr" => "spot-fleet-request",
        "vpc" => "vpc",
        "subnet" => "subnet",
        "igw" => "internet-gateway",
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
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others(action, input, &["Resources", "Tags", "DryRun"])?;
        let tags = read_tags(input, "Tags");
        // Deleted is a tag by its key, and only with this value where one is given.
        let with_value: Vec<bool> =
            input.list("Tags").iter().map(|tag| tag.text("Value").is_some()).collect();
        let named: Vec<String> = input.texts("Resources").into_iter().map(str::to_owned).collect();
        for id in &named {
            if self.tags_mut(scope, id)?.is_none() {
                let text = format!("The ID '{id}' is not valid");
                return Err(ApiError::new("InvalidID", text));
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
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    /// The tags of a resource of the caller; `None`: there is no such kind.
    fn tags_mut(
        &mut self,
        scope: &CallScope,
        id: &str,
    ) -> Result<Option<&mut Vec<(String, String)>>, ApiError> {
        let key = (scope.clone(), id.to_owned());
        Ok(match kind_of(id) {
            "" => None,
            "instance" => {
                let index = self.instance_of(scope, id)?;
                self.instances.get_mut(index).map(|it| &mut it.tags)
            }
            "spot-instances-request" => {
                let index = self.request_of(scope, id)?;
                self.requests.get_mut(index).map(|it| &mut it.tags)
            }
            "security-group" if self.groups.contains_key(&key) => {
                self.groups.get_mut(&key).map(|group| &mut group.tags)
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
            _ => Some(self.other_tags.entry(key).or_default()),
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
        }
        let own = self.requests.iter();
        for it in own.filter(|it| it.account == scope.account && it.region == scope.region) {
            add(&it.id, &it.tags);
        }
        for ((_, id), group) in self.groups.iter().filter(|((owner, _), _)| owner == scope) {
            add(id, &group.tags);
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
        for ((_, id), tags) in self.other_tags.iter().filter(|((owner, _), _)| owner == scope) {
            add(id, tags);
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
