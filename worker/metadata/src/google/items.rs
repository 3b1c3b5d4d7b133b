//! The metadata of an instance of Compute Engine.

use serde_json::{Map, Value};

use crate::{TakingAction, VmFacts, VmMarket, notices::VmAnnouncements, tree::TreeNode};

/// The whole metadata tree from its root.
pub(super) fn metadata_tree(facts: &VmFacts, notices: &VmAnnouncements) -> TreeNode {
    let of_project = |what: &str, name: &str| {
        TreeNode::value(format!("projects/{PROJECT_NUMBER}/{what}/{name}"))
    };
    let project = TreeNode::directory([
        ("attributes", TreeNode::directory([])),
        ("numeric-project-id", TreeNode::value(PROJECT_NUMBER)),
        ("project-id", TreeNode::value("dormouse")),
    ]);
    let is_spot = facts.market == VmMarket::Spot;
    // A notice that ends the VM is a preemption. One that hibernates it is none: the VM comes back.
    let taking = notices.interruption.map(|it| it.taking);
    let is_preempted = matches!(taking, Some(TakingAction::Terminate | TakingAction::Stop));
    let scheduling = TreeNode::directory([
        ("automatic-restart", truth_node(!is_spot)),
        ("on-host-maintenance", TreeNode::value(if is_spot { "TERMINATE" } else { "MIGRATE" })),
        ("preemptible", truth_node(is_spot)),
    ]);
    let interface = TreeNode::directory([
        ("ip", TreeNode::value(facts.address.to_string())),
        ("mac", TreeNode::value(facts.mac_address())),
        ("network", of_project("networks", "default")),
    ]);
    let maintenance = match taking {
        Some(TakingAction::Terminate | TakingAction::Stop) => "TERMINATE_ON_HOST_MAINTENANCE",
        Some(TakingAction::Hibernate) | None => "NONE",
    };
    let hostname = format!("{}.{}.c.dormouse.internal", facts.name(), facts.place.zone);
    // Tags are attributes that the owner has set, and so is the data that cloud-init reads.
    let own = facts.tags.iter().map(|(name, value)| (name.clone(), TreeNode::value(value)));
    let user_data =
        facts.user_data.iter().map(|text| (USER_DATA.to_owned(), TreeNode::value(text)));
    let instance = TreeNode::directory([
        ("attributes", TreeNode::Directory(own.chain(user_data).collect())),
        ("cpu-platform", TreeNode::value("Unknown CPU Platform")),
        ("description", TreeNode::value("")),
        ("hostname", TreeNode::value(hostname)),
        ("id", TreeNode::value(facts.google_id().to_string())),
        ("machine-type", of_project("machineTypes", &facts.kind)),
        ("maintenance-event", TreeNode::value(maintenance)),
        ("name", TreeNode::value(facts.name())),
        ("network-interfaces", TreeNode::directory([("0", interface)])),
        ("preempted", truth_node(is_preempted)),
        ("scheduling", scheduling),
        ("service-accounts", TreeNode::directory([])),
        ("tags", TreeNode::value("[]")),
        ("zone", of_project("zones", &facts.place.zone)),
    ]);
    let v1 = TreeNode::directory([("instance", instance), ("project", project)]);
    TreeNode::directory([("computeMetadata", TreeNode::directory([("v1", v1)]))])
}

const PROJECT_NUMBER: &str = "100000000000";
const USER_DATA: &str = "user-data";

fn truth_node(is: bool) -> TreeNode {
    TreeNode::value(if is { "TRUE" } else { "FALSE" })
}

/// A node as JSON: keys in camel case, numbered directories as lists, numbers as numbers.
pub(super) fn node_json(node: &TreeNode) -> Value {
    let children = match node {
        TreeNode::Value(text) => return text_json(text),
        TreeNode::Directory(children) => children,
    };
    let is_list = !children.is_empty()
        && children.iter().all(|(name, _)| name.bytes().all(|byte| byte.is_ascii_digit()));
    if is_list {
        return children.iter().map(|(_, child)| node_json(child)).collect();
    }
    let named = children.iter().map(|(name, child)| (in_one(name), node_json(child)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// A text as JSON: a number or a list if the text has that form, else a string.
pub(super) fn text_json(text: &str) -> Value {
    let is_typed = text.starts_with('[') || text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = Some(text).filter(|_| is_typed).and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| Value::from(text))
}

/// A name in camel case: `maintenanceEvent` for `maintenance-event`.
fn in_one(name: &str) -> String {
    let mut parts = name.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut all, part| {
        let mut letters = part.chars();
        all.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        all + letters.as_str()
    })
}
