//! Generates the reference of a kind of file from its schema: every key with its meaning, unit,
//! range and default.

use std::fmt::Write as _;

use serde_json::Value;

use crate::schema::{kinds, toml_of, words};

/// Returns a reference of all keys of a schema as Markdown, after an introduction. Keys inside the key `again` are
/// left out, since the page describes them elsewhere.
#[must_use]
pub fn reference(introduction: &str, schema: &Value, again: &str) -> String {
    let mut page = ReferencePage { text: introduction.to_owned(), again, last: None };
    page.write_table("", 2, schema);
    page.text
}

/// The reference page under construction, as Markdown.
struct ReferencePage<'a> {
    text: String,
    again: &'a str,
    /// Heading and keys of the last kind of a table that has several kinds; `None`: there was none.
    last: Option<(String, Vec<Value>)>,
}

impl ReferencePage<'_> {
    /// Writes a table's keys, then the tables inside it.
    fn write_table(&mut self, path: &str, depth: usize, schema: &Value) {
        let Some(keys) = schema["properties"].as_object() else { return };
        let tag = |key: &Value| key["const"].is_string();
        if keys.values().any(|key| !tag(key)) {
            self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        }
        let needed: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, schema) in keys.iter().filter(|(_, schema)| !tag(schema)) {
            let default = match &schema["default"] {
                Value::Null if needed.contains(&key.as_str()) => "needed".to_owned(),
                Value::Null => String::new(),
                value => format!("`{}`", toml_of(value)),
            };
            let about = one_line(&schema["description"]);
            let forms = schema["anyOf"].as_array().into_iter().flatten();
            let choice: Vec<_> = words(schema)
                .into_iter()
                .chain(forms.flat_map(words))
                .chain(words(&schema["items"]))
                .map(|(word, about)| match one_line(&Value::from(about)) {
                    about if about.is_empty() => format!("`{word}`"),
                    about => format!("`{word}`: {about}"),
                })
                .collect();
            let meaning = [vec![about], choice].concat().join("<br>");
            let _ =
                writeln!(self.text, "| `{key}` | {} | {default} | {meaning} |", form_text(schema));
        }
        for (key, schema) in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if !path.starts_with(&format!("{}.", self.again)) {
                self.write_inside(&path, depth, schema);
            }
        }
    }

    /// Writes the keys inside a key's value.
    fn write_inside(&mut self, path: &str, depth: usize, schema: &Value) {
        let heading = "#".repeat(depth.min(5));
        if let Some((tag, kinds)) = kinds(schema) {
            for (word, kind) in kinds {
                let about = one_line(&kind["description"]);
                let _ = write!(self.text, "\n{heading} `{path}`, {tag} = \"{word}\"\n\n{about}\n");
                // Schedulers share most of their parameters.
                let own = kind["properties"].as_object().into_iter().flatten();
                let own: Vec<_> =
                    own.filter(|(key, _)| *key != tag).map(|(_, key)| key.clone()).collect();
                match &self.last {
                    Some((first, keys)) if *keys == own && !own.is_empty() => {
                        let _ = write!(self.text, "\nIt has the keys of `{first}`.\n");
                    }
                    _ => {
                        self.write_table(path, depth + 1, kind);
                        self.last = Some((word.to_owned(), own));
                    }
                }
            }
            return;
        }
        if schema["type"] == "array" {
            return self.write_inside(path, depth, &schema["items"]);
        }
        for form in schema["anyOf"].as_array().into_iter().flatten() {
            self.write_inside(path, depth, form);
        }
        if schema["additionalProperties"].is_object() {
            self.write_inside(&format!("{path}.NAME"), depth, &schema["additionalProperties"]);
        }
        if schema["properties"].is_object() {
            let about = one_line(&schema["description"]);
            let _ = write!(self.text, "\n{heading} `{path}`\n\n{about}\n");
            self.write_table(path, depth + 1, schema);
        }
    }
}

/// Description of a value's form: type, unit and range.
fn form_text(schema: &Value) -> String {
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().map(form_text).collect::<Vec<_>>().join(" or ");
    }
    if !words(schema).is_empty() {
        return "one of".to_owned();
    }
    if kinds(schema).is_some() {
        return "table".to_owned();
    }
    let number = |key: &str| schema[key].as_f64();
    let bounds = match (number("minimum"), number("maximum"), number("exclusiveMinimum")) {
        (_, Some(most), Some(above)) => format!(", above {above} to {most}"),
        (Some(least), Some(most), None) => format!(", {least} to {most}"),
        (Some(least), None, None) if least > 0.0 => format!(", at least {least}"),
        (None, Some(most), None) => format!(", at most {most}"),
        _ => String::new(),
    };
    let what = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string" | "number"), Some(unit)) if unit != "double" => unit.to_owned(),
        (Some("string"), _) => "text".to_owned(),
        (Some("integer"), _) => "whole number".to_owned(),
        (Some("boolean"), _) => "true or false".to_owned(),
        (Some("object"), _) => "table".to_owned(),
        (Some("array"), _) => match &schema["items"] {
            Value::Array(pair) => format!("list of {}", pair.len()),
            one => format!("list of {}", form_text(one)),
        },
        (kind, _) => kind.unwrap_or("value").to_owned(),
    };
    what + &bounds
}

/// A doc comment as one line of a table, without its code links.
fn one_line(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default().replace("[`", "`").replace("`]", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
