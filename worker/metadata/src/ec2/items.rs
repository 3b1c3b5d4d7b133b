//! The categories of EC2's metadata that a VM has.

use serde_json::{Value, json};

use crate::{Facts, Market, notices::Notices, tree::Node};

/// All of them, under a version.
pub(super) fn tree(facts: &Facts, notices: &Notices) -> Node {
    let document = Node::directory([("document", Node::value(pretty(&document(facts))))]);
    Node::directory([
        ("dynamic", Node::directory([("instance-identity", document)])),
        ("meta-data", Node::Directory(meta_data(facts, notices))),
    ])
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
    all.into_iter().map(|(name, node)| (name.to_owned(), node)).collect()
}

/// Events that the provider plans: no maintenance ever, and a recommendation where there is one.
fn events(notices: &Notices) -> Node {
    let maintenance =
        Node::directory([("history", Node::value("[]")), ("scheduled", Node::value("[]"))]);
    let mut all = vec![("maintenance".to_owned(), maintenance)];
    if let Some(since) = notices.rebalance {
        let notice = json!({ "noticeTime": since.iso() }).to_string();
        let recommendations = Node::directory([("rebalance", Node::value(notice))]);
        all.push(("recommendations".to_owned(), recommendations));
    }
    Node::Directory(all)
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
