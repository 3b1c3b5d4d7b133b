//! The categories of EC2's metadata that a VM has.

use serde_json::{Value, json};

use crate::{Facts, MaintenanceEvent, MaintenanceState, Market, notices::Notices, tree::Node};

/// All of them, under a version.
pub(super) fn tree(facts: &Facts, notices: &Notices) -> Node {
    let document = Node::directory([("document", Node::value(pretty(&document(facts))))]);
    let mut all = vec![
        ("dynamic".to_owned(), Node::directory([("instance-identity", document)])),
        ("meta-data".to_owned(), Node::Directory(meta_data(facts, notices))),
    ];
    let user_data = facts.user_data.iter().map(|text| ("user-data".to_owned(), Node::value(text)));
    all.extend(user_data);
    Node::Directory(all)
}

fn meta_data(facts: &Facts, notices: &Notices) -> Vec<(String, Node)> {
    let mac = facts.mac();
    let hostname = facts.hostname();
    let address = facts.address.to_string();
    let life = match facts.market {
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    };
    let disk =
        Node::directory([("ami", Node::value("/dev/xvda")), ("root", Node::value("/dev/xvda"))]);
    let placement = Node::directory([
        ("availability-zone", Node::value(&facts.place.zone)),
        ("availability-zone-id", Node::value(facts.place.zone_id())),
        ("region", Node::value(&facts.place.region)),
    ]);
    let services = Node::directory([
        ("domain", Node::value("amazonaws.com")),
        ("partition", Node::value("aws")),
    ]);
    let mut all = vec![
        ("ami-id", Node::value(facts.ec2_id("ami"))),
        ("ami-launch-index", Node::value("0")),
        ("ami-manifest-path", Node::value("(unknown)")),
        ("block-device-mapping", disk),
        ("events", events(notices)),
        ("hostname", Node::value(&hostname)),
        ("instance-action", Node::value("none")),
        ("instance-id", Node::value(facts.instance_id())),
        ("instance-life-cycle", Node::value(life)),
        ("instance-type", Node::value(&facts.kind)),
        ("local-hostname", Node::value(&hostname)),
        ("local-ipv4", Node::value(&address)),
        ("mac", Node::value(&mac)),
        ("network", network(mac, hostname, address)),
        ("placement", placement),
        ("profile", Node::value("default-hvm")),
        ("reservation-id", Node::value(facts.ec2_id("r"))),
        ("security-groups", Node::value("default")),
        ("services", services),
    ];
    all.extend(spot(notices).map(|spot| ("spot", spot)));
    all.push(("system", Node::value("nitro")));
    if !facts.tags.is_empty() {
        let tags = facts.tags.iter().map(|(name, value)| (name.clone(), Node::value(value)));
        all.push(("tags", Node::directory([("instance", Node::Directory(tags.collect()))])));
    }
    all.into_iter().map(|(name, node)| (name.to_owned(), node)).collect()
}

/// Events that the provider plans: maintenance where there is some, and a recommendation where there is one.
fn events(notices: &Notices) -> Node {
    let mut all = vec![("maintenance".to_owned(), maintenance(notices.maintenance.as_ref()))];
    if let Some(since) = notices.rebalance {
        let notice = json!({ "noticeTime": since.iso() }).to_string();
        let recommendations = Node::directory([("rebalance", Node::value(notice))]);
        all.push(("recommendations".to_owned(), recommendations));
    }
    Node::Directory(all)
}

/// Maintenance that is planned, with what has become of it, and what is over of it.
fn maintenance(event: Option<&MaintenanceEvent>) -> Node {
    let is_over = |event: &&MaintenanceEvent| event.state != MaintenanceState::Active;
    let listed = |events: Option<&MaintenanceEvent>| {
        let events: Vec<_> = events.into_iter().map(maintenance_event).collect();
        Node::value(Value::from(events).to_string())
    };
    Node::directory([("history", listed(event.filter(is_over))), ("scheduled", listed(event))])
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
        "State": state.word(),
        "NotBeforeDeadline": deadline.day_first(),
    })
}

/// The interruption that is to come; only one that terminates has a time of termination.
fn spot(notices: &Notices) -> Option<Node> {
    let action = crate::Service::notice(notices.interruption?);
    let mut all = vec![("instance-action".to_owned(), Node::value(action))];
    let terminates = notices.terminates_at();
    all.extend(terminates.map(|at| ("termination-time".to_owned(), Node::value(at.iso()))));
    Some(Node::Directory(all))
}

fn network(mac: String, hostname: String, address: String) -> Node {
    let interface = Node::directory([
        ("device-number", Node::value("0")),
        ("local-hostname", Node::value(hostname)),
        ("local-ipv4s", Node::value(address)),
        ("mac", Node::value(&mac)),
    ]);
    let macs = Node::Directory(vec![(mac, interface)]);
    Node::directory([("interfaces", Node::directory([("macs", macs)]))])
}

/// Who the VM is, in one document. Nobody signs it.
fn document(facts: &Facts) -> Value {
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
        "pendingTime": facts.launched.iso(),
        "privateIp": facts.address.to_string(),
        "ramdiskId": null,
        "region": facts.place.region,
        "version": "2017-09-30",
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}
