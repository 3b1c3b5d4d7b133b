//! The keys of experiment files, as `--set` takes them.

use std::collections::BTreeMap;

use dormouse_experiment::schema;
use serde_json::Value;

use super::failure::Failure;

/// Every key that has a value (and not a table), by its path, with a line about it. Items of lists have the index 0.
pub(super) fn keys() -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (key, schema) in properties(schema()) {
        // A tenant has the keys of an experiment.
        if key != "tenant" {
            add(key, schema, "", &mut keys);
        }
    }
    keys
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().flat_map(|key| schema[key].as_array().into_iter().flatten())
}

fn add(path: &str, schema: &Value, about: &str, keys: &mut BTreeMap<String, String>) {
    let about = schema["description"].as_str().unwrap_or(about);
    let is_a_value = |schema: &Value| match &schema["type"] {
        Value::String(kind) => !["object", "array", "null"].contains(&kind.as_str()),
        kind => kind.is_array() || !schema["const"].is_null() || !schema["enum"].is_null(),
    };
    if is_a_value(schema) {
        keys.entry(path.to_owned()).or_insert_with(|| about.to_owned());
    }
    for (key, inner) in properties(schema) {
        add(&format!("{path}.{key}"), inner, "", keys);
    }
    if schema["items"].is_object() {
        add(&format!("{path}.0"), &schema["items"], about, keys);
    }
    for one in alternatives(schema) {
        add(path, one, about, keys);
    }
}

/// Refuses a `--set` whose key lacks its section, such as `alpha=1` for `scheduler.alpha`, and names the keys that the
/// user may mean.
pub(super) fn check(set: &[String]) -> Result<(), Failure> {
    let sections: Vec<&str> = properties(schema()).map(|(key, _)| key).collect();
    for text in set {
        let path = text.split('=').next().unwrap_or_default().trim();
        let first = path.split('.').next().unwrap_or_default();
        if path.is_empty() || sections.contains(&first) {
            continue;
        }
        let ending = format!(".{path}");
        let meant: Vec<String> = keys().into_keys().filter(|key| key.ends_with(&ending)).collect();
        if !meant.is_empty() {
            let meant: Vec<String> = meant.iter().map(|key| format!("'{key}'")).collect();
            let meant = meant.join(" or ");
            let what = format!("--set: {path}: there is no key '{path}' here");
            return Err(Failure::BadInput(format!("{what}; did you mean {meant}?")));
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn keys_are_paths_that_can_be_set() {
        let keys = keys();
        for key in [
            "seed",
            "scheduler.alpha",
            "workload.deadline",
            "interruption.0.k-hibernate",
            "live.speedup",
            "checkpoint.policy",
        ] {
            assert!(keys.get(key).is_some_and(|about| !about.is_empty()), "{key}: {keys:#?}");
        }
        assert!(!keys.contains_key("scheduler") && !keys.contains_key("tenant.0.seed"));
    }

    #[test]
    fn a_key_without_its_section_is_answered_with_it() {
        let no = |set: &str| match check(&[set.to_owned()]) {
            Err(Failure::BadInput(said)) => said,
            other => panic!("{set}: {other:?}"),
        };
        assert!(
            no("alpha=0.7").ends_with("did you mean 'scheduler.alpha'?"),
            "{}",
            no("alpha=0.7")
        );
        assert!(no("deadline=45m").contains("'workload.deadline'"), "{}", no("deadline=45m"));
        for right in ["seed=2", "scheduler.alhpa=1", "nothing=1", "=1", "x"] {
            check(&[right.to_owned()]).unwrap();
        }
    }
}
