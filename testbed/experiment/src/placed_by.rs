//! The option `--scheduler` for requests for VMs: the rule that places them.

use std::borrow::Cow;

use dormouse_documents::{Node, Override, Value};

/// For an experiment with requests alone, turns a setting of the scheduler's name into one of the
/// placement rule. A named rule replaces one that is put together.
pub(crate) fn placed_by<'a>(root: &mut Node, change: &'a Override) -> Cow<'a, Override> {
    const NAMES: [&str; 2] = ["scheduler.name", "policy.name"];
    let kind = root.get("workload").and_then(|workload| workload.text("kind"));
    let is_alone = kind == Some("requests") && root.get("tenant").is_none();
    if !is_alone || !NAMES.contains(&change.path.as_str()) {
        return Cow::Borrowed(change);
    }
    if let Value::Table(table) = &mut root.value
        && let Some(Node { value: Value::Table(cloud), .. }) = table.get_mut("cloud")
        && matches!(cloud.get("placement"), Some(Node { value: Value::Text(_), .. }))
    {
        cloud.remove("placement");
    }
    Cow::Owned(Override { path: "cloud.placement.scheduler".to_owned(), ..change.clone() })
}
