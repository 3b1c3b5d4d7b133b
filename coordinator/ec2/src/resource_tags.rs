//! Tags of resources: read from calls, checked by EC2's rules, and written into answers.

use dormouse_ec2_wire::{ApiError, WireValue};

/// Greatest number of a resource's tags, not counting the tags of AWS.
const MAX_TAGS: usize = 50;
/// Most characters of a tag's key.
const KEY_CHARS: usize = 128;
/// Most characters of a tag's value.
const VALUE_CHARS: usize = 256;

/// Kinds of resources that a launch creates and tags.
const LAUNCHED: &[&str] = &["instance", "volume", "network-interface", "spot-instances-request"];
/// Kinds that a launch specification of a spot fleet tags.
const LAUNCHED_BY_SPOT_FLEET: &[&str] = &["instance"];
/// Kinds that an instant fleet tags; other fleets tag what they launch by their templates.
const LAUNCHED_BY_FLEET: &[&str] =
    &["fleet", "instance", "volume", "network-interface", "spot-instances-request"];

/// Kinds of resources that an action creates, so that its tag specifications may name them.
fn created_kinds(action: &str, input: &WireValue) -> &'static [&'static str] {
    match action {
        "RunInstances" => LAUNCHED,
        "RequestSpotInstances" => &["spot-instances-request"],
        "CreateFleet" if input.text("Type") == Some("instant") => LAUNCHED_BY_FLEET,
        "CreateFleet" => &["fleet"],
        "CreateLaunchTemplate" => &["launch-template"],
        "CreateKeyPair" | "ImportKeyPair" => &["key-pair"],
        "CreateVolume" => &["volume"],
        "CreateSnapshot" | "CreateSnapshots" | "CopySnapshot" => &["snapshot"],
        "CreateVpc" => &["vpc"],
        "CreateSubnet" => &["subnet"],
        "CreateSubnetCidrReservation" => &["subnet-cidr-reservation"],
        "CreateInternetGateway" => &["internet-gateway"],
        "CreateSecurityGroup" => &["security-group"],
        "AuthorizeSecurityGroupIngress" | "AuthorizeSecurityGroupEgress" => {
            &["security-group-rule"]
        }
        _ => &[],
    }
}

/// The parts of a call's input with tag specifications, each with the kinds of resources that they may name.
fn tagging_parts<'a>(
    action: &str,
    input: &'a WireValue,
) -> Vec<(&'a WireValue, &'static [&'static str])> {
    let mut parts = vec![(input, created_kinds(action, input))];
    parts.extend(input.member("LaunchTemplateData").map(|data| (data, LAUNCHED)));
    if let Some(config) = input.member("SpotFleetRequestConfig") {
        let launches = config.list("LaunchSpecifications").iter();
        parts.push((config, &["spot-fleet-request"]));
        parts.extend(launches.map(|launch| (launch, LAUNCHED_BY_SPOT_FLEET)));
    }
    parts
}

/// The lists of tags that a call gives resources.
fn given_tags<'a>(action: &str, input: &'a WireValue) -> impl Iterator<Item = &'a [WireValue]> {
    let parts = tagging_parts(action, input).into_iter();
    let specified = parts.flat_map(|(part, _)| part.list("TagSpecifications"));
    let own = if action == "CreateTags" { input.list("Tags") } else { &[] };
    specified.map(|of| of.list("Tags")).chain([own])
}

/// Whether a call gives a resource a tag with this key.
pub(crate) fn gives_tag(action: &str, input: &WireValue, key: &str) -> bool {
    given_tags(action, input).flatten().any(|tag| tag.text("Key") == Some(key))
}

/// Checks the tags that a call gives resources.
///
/// # Errors
///
/// `InvalidParameterValue` for a specification without a kind or without a tag (in CreateSubnet `InvalidParameter`);
/// `InvalidParameter` for a kind that the call does not create; `TagLimitExceeded` for more tags than a resource may have;
/// `InvalidParameterValue` for a key that is empty, too long, given twice or AWS's, or too long a value.
pub(crate) fn check_tags(action: &str, input: &WireValue) -> Result<(), ApiError> {
    let of_subnet = action == "CreateSubnet";
    let incomplete = if of_subnet { "InvalidParameter" } else { "InvalidParameterValue" };
    let refused = |text: &str| Err(ApiError::new(incomplete, text));
    for (part, kinds) in tagging_parts(action, input) {
        for specification in part.list("TagSpecifications") {
            let kind = specification.text("ResourceType").unwrap_or_default();
            if kind.is_empty() {
                return refused("Tag specification resource type must have a value");
            }
            if specification.list("Tags").is_empty() {
                return refused("Tag specification must have at least one tag");
            }
            if !kinds.contains(&kind) {
                let text =
                    format!("'{kind}' is not a valid taggable resource type for this operation.");
                return Err(ApiError::new("InvalidParameter", text));
            }
        }
    }
    // In CreateTags, as SkyPilot calls it, the last of a key's values counts.
    let once = action != "CreateTags";
    given_tags(action, input).try_for_each(|tags| check_tag_list(tags, once))
}

/// Checks the tags that one resource is given; with `once`, a key may be there once.
fn check_tag_list(tags: &[WireValue], once: bool) -> Result<(), ApiError> {
    let wrong = |text: String| Err(ApiError::new("InvalidParameterValue", text));
    check_tag_count(tags.len())?;
    let keys: Vec<&str> = tags.iter().map(|tag| tag.text("Key").unwrap_or_default()).collect();
    for (place, key) in keys.iter().enumerate() {
        if key.is_empty() {
            return wrong("Tag key cannot be empty".to_owned());
        }
        if key.chars().count() > KEY_CHARS {
            return wrong(format!("Tag key exceeds the maximum length of {KEY_CHARS} characters"));
        }
        if key.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("aws:")) {
            return wrong(reserved_key(key));
        }
        if once && keys.iter().take(place).any(|other| other == key) {
            return wrong(format!("Duplicate tag key '{key}' specified."));
        }
    }
    let mut values = tags.iter().filter_map(|tag| tag.text("Value"));
    if values.any(|value| value.chars().count() > VALUE_CHARS) {
        return wrong(format!("Tag value exceeds the maximum length of {VALUE_CHARS} characters"));
    }
    Ok(())
}

/// Checks the number of a resource's tags, without the tags of AWS.
///
/// # Errors
///
/// `TagLimitExceeded`.
pub(crate) fn check_tag_count(count: usize) -> Result<(), ApiError> {
    if count <= MAX_TAGS {
        return Ok(());
    }
    let text = "The maximum number of Tags for a resource has been reached.";
    Err(ApiError::new("TagLimitExceeded", text))
}

/// EC2's text for a key of a tag that only AWS itself gives.
pub(crate) fn reserved_key(key: &str) -> String {
    format!("Tag keys starting with 'aws:' are reserved for internal use: {key}")
}

/// The tags that a call gives resources of this kind.
pub(crate) fn tags_for(input: &WireValue, resource: &str) -> Vec<(String, String)> {
    let specifications = input.list("TagSpecifications").iter();
    let own = specifications.filter(|tags| tags.text("ResourceType") == Some(resource));
    own.flat_map(|tags| read_tags(tags, "Tags")).collect()
}

/// Reads the tags in the list `name` of an input.
pub(crate) fn read_tags(input: &WireValue, name: &str) -> Vec<(String, String)> {
    let tag = |tag: &WireValue| {
        let value = tag.text("Value").unwrap_or_default().to_owned();
        Some((tag.text("Key")?.to_owned(), value))
    };
    input.list(name).iter().filter_map(tag).collect()
}

/// Encodes tags as EC2 does.
pub(crate) fn tags_to_wire(tags: &[(String, String)]) -> WireValue {
    let tag = |(key, value): &(String, String)| {
        WireValue::structure().with("Key", key.as_str()).with("Value", value.as_str())
    };
    WireValue::list_of(tags.iter().map(tag))
}

/// Sets tags; a new tag replaces an existing one with the same key.
pub(crate) fn set_tags(tags: &mut Vec<(String, String)>, new: &[(String, String)]) {
    for (key, value) in new {
        match tags.iter_mut().find(|(own, _)| own == key) {
            Some((_, own)) => own.clone_from(value),
            None => tags.push((key.clone(), value.clone())),
        }
    }
}
