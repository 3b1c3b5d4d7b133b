//! The metadata of an instance of Compute Engine.

use serde_json::{Map, Value};

use crate::{Facts, Market, Taking, notices::Notices, tree::Node};

/// All of it, from the root on.
pub(super) fn tree(facts: &Facts, notices: &Notices) -> Node {
    let of_project =
        |what: &str, name: &str| Node::value(format!("projects/{PROJECT_NUMBER}/{what}/{name}"));
    let project = Node::directory([
        ("attributes", Node::directory([])),
        ("numeric-project-id", Node::value(PROJECT_NUMBER)),
        ("project-id", Node::value("dormouse")),
    ]);
    let is_spot = facts.market == Market::Spot;
    // A notice that ends the VM is a preemption. One that hibernates it is none: the VM comes back.
    let taking = notices.interruption.map(|it| it.taking);
    let is_preempted = matches!(taking, Some(Taking::Terminate | Taking::Stop));
    let scheduling = Node::directory([
        ("automatic-restart", truth(!is_spot)),
        ("on-host-maintenance", Node::value(if is_spot { "TERMINATE" } else { "MIGRATE" })),
        ("preemptible", truth(is_spot)),
    ]);
    let interface = Node::directory([
        ("ip", Node::value(facts.address.to_string())),
        ("mac", Node::value(facts.mac())),
        ("network", of_project("networks", "default")),
    ]);
    let maintenance = match taking {
        Some(Taking::Terminate | Taking::Stop) => "TERMINATE_ON_HOST_MAINTENANCE",
        Some(Taking::Hibernate) | None => "NONE",
    };
    let hostname = format!("{}.{}.c.dormouse.internal", facts.name(), facts.place.zone);
    // Tags are attributes that the owner has set, and so is the data that cloud-init reads.
    let own = facts.tags.iter().map(|(name, value)| (name.clone(), Node::value(value)));
    let user_data = facts.user_data.iter().map(|text| (USER_DATA.to_owned(), Node::value(text)));
    let instance = Node::directory([
        ("attributes", Node::Directory(own.chain(user_data).collect())),
        ("cpu-platform", Node::value("Unknown CPU Platform")),
        ("description", Node::value("")),
        ("hostname", Node::value(hostname)),
        ("id", Node::value(facts.number().to_string())),
        ("machine-type", of_project("machineTypes", &facts.kind)),
        ("maintenance-event", Node::value(maintenance)),
        ("name", Node::value(facts.name())),
        ("network-interfaces", Node::directory([("0", interface)])),
        ("preempted", truth(is_preempted)),
        ("scheduling", scheduling),
        ("service-accounts", Node::directory([])),
        ("tags", Node::value("[]")),
        ("zone", of_project("zones", &facts.place.zone)),
    ]);
    let v1 = Node::directory([("instance", instance), ("project", project)]);
    Node::directory([("computeMetadata", Node::directory([("v1", v1)]))])
}

const PROJECT_NUMBER: &str = "100000000000";
const USER_DATA: &str = "user-data";

fn truth(is: bool) -> Node {
    Node::value(if is { "TRUE" } else { "FALSE" })
}

/// A node as JSON has it: names without hyphens, numbered things as a list, numbers as such.
pub(super) fn value(node: &Node) -> Value {
    let children = match node {
        Node::Value(text) => return typed(text),
        Node::Directory(children) => children,
    };
    let is_list = !children.is_empty()
        && children.iter().all(|(name, _)| name.bytes().all(|byte| byte.is_ascii_digit()));
    if is_list {
        return children.iter().map(|(_, child)| value(child)).collect();
    }
    let named = children.iter().map(|(name, child)| (in_one(name), value(child)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// A text as JSON: a number or a list where it is one.
pub(super) fn typed(text: &str) -> Value {
    let is_typed = text.starts_with('[') || text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = Some(text).filter(|_| is_typed).and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| Value::from(text))
}

/// A name in one word: `maintenanceEvent` for `maintenance-event`.
fn in_one(name: &str) -> String {
    let mut parts = name.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut all, part| {
        let mut letters = part.chars();
        all.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        all + letters.as_str()
    })
}
