//! JSON schemas of files, generated from types.

use dormouse_units::{Bytes, Span};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of `T` with all definitions inlined.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_plain(&mut schema);
    schema
}

/// Adapts a schema to what people write: no null, and defaults in their own notation.
fn make_plain(schema: &mut Value) {
    if let Value::Object(keys) = schema {
        if let Some(Value::Array(types)) = keys.get_mut("type")
            && let Some(first) = types.iter().find(|kind| *kind != "null").cloned()
        {
            keys.insert("type".to_owned(), first);
        }
        if let Some(Value::Array(kinds)) = keys.get_mut("anyOf") {
            kinds.retain(|kind| kind["type"] != "null");
            if let [Value::Object(only)] = kinds.as_mut_slice() {
                let only = std::mem::take(only);
                keys.remove("anyOf");
                for (key, value) in only {
                    keys.entry(key).or_insert(value);
                }
            }
        }
        if let Some(Value::Array(words)) = keys.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        if let Some(Value::Array(kinds)) = keys.get_mut("oneOf") {
            kinds.retain(|kind| kind["enum"].as_array().is_none_or(|words| !words.is_empty()));
        }
        let unit = keys.get("format").and_then(Value::as_str).map(str::to_owned);
        if let Some(value) = keys.get_mut("default") {
            let number = value.as_f64();
            match (unit.as_deref(), value.as_u64(), number) {
                (Some("time"), Some(us), _) => *value = json!(Span::from_micros(us).to_string()),
                (Some("memory"), Some(bytes), _) => *value = json!(Bytes::new(bytes).to_string()),
                (Some("part"), _, Some(ppm)) => *value = json!(ppm / 1e6),
                (Some("credits"), _, Some(us)) => *value = json!(us / 60e6),
                (Some("dollars an hour"), _, Some(nanos)) => *value = json!(nanos / 1e9),
                _ => {}
            }
        }
        if keys.get("default").is_some_and(|value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some()
                || value == ""
        }) {
            keys.remove("default");
        }
        keys.values_mut().for_each(make_plain);
    } else if let Value::Array(list) = schema {
        list.iter_mut().for_each(make_plain);
    }
}

/// The words that a schema allows, each with its meaning; empty if the schema is not a choice of words.
pub(crate) fn words(schema: &Value) -> Vec<(&str, &str)> {
    let about = schema["description"].as_str().unwrap_or_default();
    if let Some(word) = schema["const"].as_str() {
        return vec![(word, about)];
    }
    if let Some(all) = schema["enum"].as_array() {
        return all.iter().filter_map(|word| Some((word.as_str()?, ""))).collect();
    }
    let kinds = schema["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<Vec<_>> = kinds.iter().map(words).collect();
    if all.iter().any(Vec::is_empty) { Vec::new() } else { all.concat() }
}

/// The key that selects the kind of a table, and the word and schema of each kind; `None`: there is
/// only one kind.
pub(crate) fn kinds(schema: &Value) -> Option<(&str, Vec<(&str, &Value)>)> {
    let all = schema["oneOf"].as_array()?;
    let is_tag = |key: &&String| {
        all.iter().all(|kind| kind["properties"][key.as_str()]["const"].is_string())
    };
    let tag = all.first()?["properties"].as_object()?.keys().find(is_tag)?.as_str();
    let named =
        all.iter().filter_map(|kind| Some((kind["properties"][tag]["const"].as_str()?, kind)));
    Some((tag, named.collect()))
}

/// An example of a valid value, as TOML.
pub(crate) fn example(schema: &Value) -> String {
    if let Some(value) = schema["examples"].get(0) {
        return toml_of(value);
    }
    if let Some((word, _)) = words(schema).first() {
        return format!("\"{word}\"");
    }
    if let Some((tag, kinds)) = kinds(schema)
        && let Some((word, _)) = kinds.first()
    {
        return format!("{{ {tag} = \"{word}\" }}");
    }
    match schema["type"].as_str() {
        Some("object") => "{ … }".to_owned(),
        Some("array") => "[…]".to_owned(),
        Some("integer" | "number") => "1".to_owned(),
        Some("boolean") => "true".to_owned(),
        _ => match schema["anyOf"].get(0) {
            Some(first) => example(first),
            None => "\"…\"".to_owned(),
        },
    }
}

/// A value in TOML notation.
pub(crate) fn toml_of(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            format!("[{}]", list.iter().map(toml_of).collect::<Vec<_>>().join(", "))
        }
        Value::Object(keys) => {
            let keys: Vec<_> = keys.iter().map(|(k, v)| format!("{k} = {}", toml_of(v))).collect();
            format!("{{ {} }}", keys.join(", "))
        }
        plain => plain.to_string(),
    }
}
