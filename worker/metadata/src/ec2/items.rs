//! The categories of EC2's metadata that a VM has.

use serde_json::{Value, json};

use crate::{
    MaintenanceEvent, MaintenanceState, RoleCredentials, UnixTime, VmFacts, VmMarket,
    notices::VmAnnouncements, tree::TreeNode,
};

/// Time for which the credentials of a role are said to be valid, in microseconds; clients read them again before its end.
const CREDENTIALS_US: u64 = 6 * 3_600_000_000;

/// The tree of all metadata categories at an instant, which is the same under every version.
pub(super) fn metadata_tree(facts: &VmFacts, notices: &VmAnnouncements, now: UnixTime) -> TreeNode {
    let document = TreeNode::directory([(
        "document",
        TreeNode::value(pretty_json(&identity_document(facts))),
    )]);
    let mut all = vec![
        ("dynamic".to_owned(), TreeNode::directory([("instance-identity", document)])),
        ("meta-data".to_owned(), TreeNode::Directory(meta_data(facts, notices, now))),
    ];
    let user_data =
        facts.user_data.iter().map(|text| ("user-data".to_owned(), TreeNode::value(text)));
    all.extend(user_data);
    TreeNode::Directory(all)
}

fn meta_data(facts: &VmFacts, notices: &VmAnnouncements, now: UnixTime) -> Vec<(String, TreeNode)> {
    let mac = facts.mac_address();
    let hostname = facts.ec2_hostname();
    let address = facts.address.to_string();
    let life = match facts.market {
        VmMarket::Spot => "spot",
        VmMarket::OnDemand => "on-demand",
    };
    let disk = TreeNode::directory([
        ("ami", TreeNode::value("/dev/xvda")),
        ("root", TreeNode::value("/dev/xvda")),
    ]);
    let placement = TreeNode::directory([
        ("availability-zone", TreeNode::value(&facts.place.zone)),
        ("availability-zone-id", TreeNode::value(facts.place.zone_id())),
        ("region", TreeNode::value(&facts.place.region)),
    ]);
    let services = TreeNode::directory([
        ("domain", TreeNode::value("amazonaws.com")),
        ("partition", TreeNode::value("aws")),
    ]);
    let mut all = vec![
        ("ami-id", TreeNode::value(facts.image_id())),
        ("ami-launch-index", TreeNode::value("0")),
        ("ami-manifest-path", TreeNode::value("(unknown)")),
        ("block-device-mapping", disk),
        ("events", events_node(notices)),
        ("hostname", TreeNode::value(&hostname)),
    ];
    all.extend(facts.access.role.as_ref().map(|role| ("iam", role_node(role, now))));
    all.extend([
        ("instance-action", TreeNode::value("none")),
        ("instance-id", TreeNode::value(facts.instance_id())),
        ("instance-life-cycle", TreeNode::value(life)),
        ("instance-type", TreeNode::value(&facts.kind)),
        ("local-hostname", TreeNode::value(&hostname)),
        ("local-ipv4", TreeNode::value(&address)),
        ("mac", TreeNode::value(&mac)),
        ("network", network_node(mac, hostname, address)),
        ("placement", placement),
        ("profile", TreeNode::value("default-hvm")),
    ]);
    let groups = match &facts.security_groups[..] {
        [] => "default".to_owned(),
        names => names.join("\n"),
    };
    let public = facts.access.public_address;
    all.extend(public.map(|address| ("public-ipv4", TreeNode::value(address.to_string()))));
    all.extend(facts.access.public_key.as_ref().map(|(_, text)| {
        let key = TreeNode::directory([("openssh-key", TreeNode::value(text))]);
        ("public-keys", TreeNode::directory([("0", key)]))
    }));
    all.extend([
        ("reservation-id", TreeNode::value(facts.ec2_id("r"))),
        ("security-groups", TreeNode::value(groups)),
        ("services", services),
    ]);
    all.extend(spot_node(notices).map(|spot| ("spot", spot)));
    all.push(("system", TreeNode::value("nitro")));
    if !facts.tags.is_empty() {
        let tags = facts.tags.iter().map(|(name, value)| (name.clone(), TreeNode::value(value)));
        all.push((
            "tags",
            TreeNode::directory([("instance", TreeNode::Directory(tags.collect()))]),
        ));
    }
    all.into_iter().map(|(name, node)| (name.to_owned(), node)).collect()
}

/// What SDKs read of an instance's role: its profile, and its credentials.
fn role_node(role: &RoleCredentials, now: UnixTime) -> TreeNode {
    let info = json!({
        "Code": "Success",
        "LastUpdated": now.iso_text(),
        "InstanceProfileArn": role.profile,
        "InstanceProfileId": "AIPAEXAMPLEEXAMPLE000",
    });
    let until = UnixTime::from_micros(now.as_micros().saturating_add(CREDENTIALS_US));
    let credentials = json!({
        "Code": "Success",
        "LastUpdated": now.iso_text(),
        "Type": "AWS-HMAC",
        "AccessKeyId": role.access_key,
        "SecretAccessKey": role.secret,
        "Token": role.token,
        "Expiration": until.iso_text(),
    });
    let of_role = vec![(role.name.clone(), TreeNode::value(pretty_json(&credentials)))];
    TreeNode::directory([
        ("info", TreeNode::value(pretty_json(&info))),
        ("security-credentials", TreeNode::Directory(of_role)),
    ])
}

/// Events that the provider plans: maintenance and rebalance recommendations, if there are any.
fn events_node(notices: &VmAnnouncements) -> TreeNode {
    let mut all = vec![("maintenance".to_owned(), maintenance_node(notices.maintenance.as_ref()))];
    if let Some(since) = notices.rebalance {
        let notice = json!({ "noticeTime": since.iso_text() }).to_string();
        let recommendations = TreeNode::directory([("rebalance", TreeNode::value(notice))]);
        all.push(("recommendations".to_owned(), recommendations));
    }
    TreeNode::Directory(all)
}

/// Node with the scheduled maintenance and its state, and with the history of maintenance that is over; both are empty without an
/// event.
fn maintenance_node(event: Option<&MaintenanceEvent>) -> TreeNode {
    let is_over = |event: &&MaintenanceEvent| event.state != MaintenanceState::Active;
    let listed = |events: Option<&MaintenanceEvent>| {
        let events: Vec<_> = events.into_iter().map(maintenance_event).collect();
        TreeNode::value(Value::from(events).to_string())
    };
    TreeNode::directory([("history", listed(event.filter(is_over))), ("scheduled", listed(event))])
}

fn maintenance_event(event: &MaintenanceEvent) -> Value {
    let MaintenanceEvent { code, state, not_before, not_after, deadline } = event;
    let prefix = match state {
        MaintenanceState::Active => "",
        MaintenanceState::Completed => "[Completed] ",
        MaintenanceState::Canceled => "[Canceled] ",
    };
    json!({
        "NotBefore": not_before.day_first(),
        "Code": code,
        "Description": format!("{prefix}scheduled {code}"),
        "EventId": event.id(),
        "NotAfter": not_after.day_first(),
        "State": state.ec2_word(),
        "NotBeforeDeadline": deadline.day_first(),
    })
}

/// The announced interruption; only a termination has a termination time. `None`: none is announced.
fn spot_node(notices: &VmAnnouncements) -> Option<TreeNode> {
    let action = crate::MetadataService::interruption_json(notices.interruption?);
    let mut all = vec![("instance-action".to_owned(), TreeNode::value(action))];
    let terminates = notices.terminates_at();
    all.extend(
        terminates.map(|at| ("termination-time".to_owned(), TreeNode::value(at.iso_text()))),
    );
    Some(TreeNode::Directory(all))
}

fn network_node(mac: String, hostname: String, address: String) -> TreeNode {
    let interface = TreeNode::directory([
        ("device-number", TreeNode::value("0")),
        ("local-hostname", TreeNode::value(hostname)),
        ("local-ipv4s", TreeNode::value(address)),
        ("mac", TreeNode::value(&mac)),
    ]);
    let macs = TreeNode::Directory(vec![(mac, interface)]);
    TreeNode::directory([("interfaces", TreeNode::directory([("macs", macs)]))])
}

/// Identity document of the VM. It is not signed.
fn identity_document(facts: &VmFacts) -> Value {
    json!({
        "accountId": "000000000000",
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" },
        "availabilityZone": facts.place.zone,
        "billingProducts": null,
        "devpayProductCodes": null,
        "marketplaceProductCodes": null,
        "imageId": facts.ec2_id("ami"),
        "instanceId": facts.instance_id(),
        "instanceType": facts.kind,
        "kernelId": null,
        "pendingTime": facts.launched.iso_text(),
        "privateIp": facts.address.to_string(),
        "ramdiskId": null,
        "region": facts.place.region,
        "version": "2017-09-30",
    })
}

fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}
