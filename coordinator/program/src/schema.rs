//! JSON schema of the protocol's lines, for authors of schedulers.

use dormouse_units::wire;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::lines::{HelloAnswer, HelloLine, ProgramAnswer, ProgramQuestion};

/// The JSON schema (draft 2020-12) of every line between dormouse and a scheduler that is a program. Every part of a
/// line has a named definition: each notice, each decision, each unit.
#[must_use]
pub fn schema() -> Value {
    let settings = || SchemaSettings::draft2020_12().with_transform(wire::as_integers);
    let mut heard = settings().for_serialize().into_generator();
    heard.subschema_for::<HelloLine<'_>>();
    heard.subschema_for::<ProgramQuestion<'_>>();
    let mut said = settings().into_generator();
    said.subschema_for::<HelloAnswer>();
    said.subschema_for::<ProgramAnswer>();

    let mut all = heard.take_definitions(true);
    // Decisions are in both. A scheduler may leave out what dormouse always writes.
    all.extend(said.take_definitions(true));
    all.extend(wire::quantity_definitions());
    let notices = name_variants(&mut all, "Notice", "notice");
    name_variants(&mut all, "Decision", "decision");
    all["Wants"]["properties"]["hears"]["items"]["enum"] = notices.into();
    for (name, definition) in &mut all {
        definition["title"] = name.as_str().into();
    }
    let lines = ["HelloLine", "HelloAnswer", "Ask", "Answer"].map(schema_reference);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Line",
        "description": "A line between dormouse and a scheduler that is a program.",
        "anyOf": lines,
        "$defs": all,
    })
}

/// Gives each variant of an enum a definition of its own, and returns the values of the tag: the
/// variant with tag `vm-ready` of `notice` becomes `VmReadyNotice`.
fn name_variants(all: &mut Map<String, Value>, kind: &str, tag: &str) -> Vec<Value> {
    let (mut words, mut named) = (Vec::new(), Map::new());
    for variant in all[kind]["oneOf"].as_array_mut().into_iter().flatten() {
        let word = variant["properties"][tag]["const"].clone();
        let name = format!("{}{kind}", in_camel_case(word.as_str().unwrap_or_default()));
        let definition = std::mem::replace(variant, schema_reference(&name));
        named.insert(name, definition);
        words.push(word);
    }
    all.extend(named);
    words
}

fn schema_reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Converts a name such as `vm-ready` to `VmReady`.
fn in_camel_case(word: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    word.split('-').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dormouse_model::Notice;

    use super::*;

    #[test]
    fn it_is_whole_and_always_the_same() {
        let schema = schema();
        let text = schema.to_string();
        assert_eq!(text, super::schema().to_string());
        let references = text.split("\"#/$defs/").skip(1);
        let used: BTreeSet<_> = references.filter_map(|rest| rest.split('"').next()).collect();
        let all = schema["$defs"].as_object().expect("definitions");
        let defined: BTreeSet<_> = all.keys().map(String::as_str).collect();
        assert_eq!(used, defined);
    }

    #[test]
    fn it_has_all_notices_but_those_of_customers() {
        let schema = schema();
        let words = schema["$defs"]["Wants"]["properties"]["hears"]["items"]["enum"].as_array();
        let words: Vec<_> = words.into_iter().flatten().filter_map(Value::as_str).collect();
        let mut names = Vec::from(Notice::NAMES);
        names.retain(|name| *name != "requested");
        assert_eq!(words, names);
    }

    /// The types' doc comments, which become the schema's descriptions, are read by people who do not know Rust.
    #[test]
    fn it_speaks_of_nothing_that_only_rust_has() {
        fn descriptions<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
            found.extend(schema["description"].as_str());
            let inside = schema.as_object().into_iter().flat_map(Map::values);
            let inside = inside.chain(schema.as_array().into_iter().flatten());
            inside.for_each(|schema| descriptions(schema, found));
        }
        let (schema, mut found) = (schema(), Vec::new());
        descriptions(&schema, &mut found);
        let is_of_rust = |about: &&str| ["`None`", "[`", "::"].iter().any(|it| about.contains(it));
        assert!(found.len() > 100, "{found:?}");
        assert_eq!(found.iter().find(|about| is_of_rust(about)), None);
        for (name, definition) in schema["$defs"].as_object().expect("definitions") {
            assert!(definition["description"].is_string(), "{name} says nothing");
        }
    }
}
