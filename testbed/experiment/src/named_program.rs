//! A scheduler program in place of a scheduler's name, as in `--scheduler ./mine.py`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dormouse_documents::{Node, Override, Place, Value, from_toml};
use dormouse_policies::program::ProgramConfig;

/// Whether a word names a program, or a scheduler of another crate, rather than a built-in
/// scheduler.
#[must_use]
pub fn names_a_program(word: &str) -> bool {
    word.contains('/') || dormouse_program::is_linked(word)
}

/// Name in tables of the scheduler that a word names.
#[must_use]
pub fn label_of(word: &str) -> String {
    let config = |command: Vec<String>| {
        let mut config: ProgramConfig =
            dormouse_units::written::read(&serde_json::json!({})).ok()?;
        config.command = command;
        Some(config.label().to_owned())
    };
    let label = names_a_program(word).then(|| config(vec![word.to_owned()])).flatten();
    label.unwrap_or_else(|| word.to_owned())
}

/// If `change` sets the scheduler's name to a program, turns the scheduler's table into the
/// program's: keys of other schedulers are dropped, keys of a program stay. Returns whether it did.
pub(crate) fn apply(root: &mut Node, change: &Override) -> bool {
    let mut keys: Vec<&str> = change.path.split('.').collect();
    if keys.pop() != Some("name") || !matches!(keys.last(), Some(&("scheduler" | "policy"))) {
        return false;
    }
    let word = match from_toml(change.option, &format!("word = {}", change.value)) {
        Ok(node) => node.text("word").map(str::to_owned),
        Err(_) => Some(change.value.clone()),
    };
    let Some(word) = word.filter(|word| names_a_program(word)) else { return false };
    if let Some(last) = keys.last_mut() {
        *last = "scheduler";
    }
    let (inside, key) = (&keys[..keys.len() - 1], "scheduler");
    let Some(table) = table_at(root, inside) else { return false };
    let place = Place { path: keys.join("."), ..Place::whole(change.option) };
    let node = |key: &str, value| (key.to_owned(), Node { place: place.key(key), value });
    let mut program: BTreeMap<String, Node> = BTreeMap::new();
    if let Some(Node { value: Value::Table(former), .. }) = table.get(key) {
        let of_both =
            ["limit", "env", "parameters", "processors", "usage-information", "migration-cost"];
        let stays = |key: &str| of_both.contains(&key);
        program.extend(former.clone().into_iter().filter(|(key, _)| stays(key)));
    }
    program.extend([node("name", Value::Text("program".to_owned()))]);
    program.extend([match word.contains('/') {
        true => {
            let first = Node { place: place.key("command.0"), value: Value::Text(word) };
            node("command", Value::List(vec![first]))
        }
        false => node("linked", Value::Text(word)),
    }]);
    table.insert(key.to_owned(), Node { place, value: Value::Table(program) });
    true
}

/// The table at this path; `None` if there is no table.
fn table_at<'a>(root: &'a mut Node, path: &[&str]) -> Option<&'a mut BTreeMap<String, Node>> {
    let mut at = root;
    for key in path {
        at = match &mut at.value {
            Value::Table(table) => table.get_mut(*key)?,
            Value::List(list) => list.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match &mut at.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// For an experiment with requests alone, turns a setting of the scheduler's name into one of the
/// placement rule. A named rule replaces a rule that is combined from several parts.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_the_place_of_a_scheduler_and_its_parameters() {
        let text = "[scheduler]\nname = 'burst-hads'\nalpha = 0.1\nparameters = { x = 1 }";
        let mut root = from_toml("file", text).expect("it is right");
        let set = |text| Override::set(text).expect("it is right");
        assert!(!apply(&mut root, &set("scheduler.name=hads")));
        assert!(!apply(&mut root, &set("scheduler.label=./mine.py")));
        assert!(apply(&mut root, &set("scheduler.name=./mine.py")));
        let expected = serde_json::json!({ "scheduler": {
            "command": ["./mine.py"], "name": "program", "parameters": { "x": 1 } } });
        assert_eq!(root.json(), expected);
        assert_eq!((label_of("../a/mine.py"), label_of("easy")), ("mine".into(), "easy".into()));
    }
}
