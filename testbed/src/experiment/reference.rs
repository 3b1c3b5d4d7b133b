//! The reference of experiment files: every key with its meaning, unit, range and default, made from the
//! schema.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema::{EXPERIMENT, kinds, toml_of, words};

/// All keys of an experiment file, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = Page::default();
    page.text.push_str(INTRODUCTION);
    page.table("", 2, &EXPERIMENT);
    page.text
}

const INTRODUCTION: &str = "\
# Experiment files

Made by `dormouse reference`; `dormouse schema` prints the same as a JSON schema, from which editors
complete: `dormouse schema > dormouse.schema.json`, and `#:schema dormouse.schema.json` as the first line
of a file.

Times are texts with a unit (`us`, `ms`, `s`, `m`, `h`, `d`): `\"45m\"`, `\"1h30m\"`. So is memory (`B`, `kB`,
`MB`, `GB`, `KiB`, `MiB`, `GiB`): `\"3.75 GiB\"`. Prices are dollars an hour, parts are numbers of which 1 is
the whole, a credit is a vCPU at full speed for a minute. Files are relative to the experiment's. Any key can
be set on the command line: `--set scheduler.alpha=0.7`, `--set interruption.0.k-hibernate=3`.
";

#[derive(Default)]
struct Page {
    text: String,
    /// The heading and the keys of the last kind of a table that has several.
    last: Option<(String, Vec<Value>)>,
}

impl Page {
    /// A table's keys, then the tables inside it.
    fn table(&mut self, path: &str, depth: usize, schema: &Value) {
        let Some(keys) = schema["properties"].as_object() else { return };
        let tag = |key: &Value| key["const"].is_string();
        if keys.values().any(|key| !tag(key)) {
            self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        }
        for (key, schema) in keys.iter().filter(|(_, schema)| !tag(schema)) {
            let default = match &schema["default"] {
                Value::Null => String::new(),
                value => format!("`{}`", toml_of(value)),
            };
            let about = one_line(&schema["description"]);
            let forms = schema["anyOf"].as_array().into_iter().flatten();
            let choice: Vec<_> = [words(schema), forms.flat_map(words).collect()]
                .iter()
                .flatten()
                .map(|(word, about)| match one_line(&Value::from(*about)) {
                    about if about.is_empty() => format!("`{word}`"),
                    about => format!("`{word}`: {about}"),
                })
                .collect();
            let meaning = [vec![about], choice].concat().join("<br>");
            let _ = writeln!(self.text, "| `{key}` | {} | {default} | {meaning} |", form(schema));
        }
        for (key, schema) in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            // What a tenant has is what an experiment has.
            if !path.starts_with("tenant.") {
                self.inside(&path, depth, schema);
            }
        }
    }

    /// What is inside a key's value.
    fn inside(&mut self, path: &str, depth: usize, schema: &Value) {
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
                        self.table(path, depth + 1, kind);
                        self.last = Some((word.to_owned(), own));
                    }
                }
            }
            return;
        }
        if schema["type"] == "array" {
            return self.inside(path, depth, &schema["items"]);
        }
        for form in schema["anyOf"].as_array().into_iter().flatten() {
            self.inside(path, depth, form);
        }
        if schema["additionalProperties"].is_object() {
            self.inside(&format!("{path}.NAME"), depth, &schema["additionalProperties"]);
        }
        if schema["properties"].is_object() {
            let about = one_line(&schema["description"]);
            let _ = write!(self.text, "\n{heading} `{path}`\n\n{about}\n");
            self.table(path, depth + 1, schema);
        }
    }
}

/// What a value looks like: its type, unit and range.
fn form(schema: &Value) -> String {
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().map(form).collect::<Vec<_>>().join(" or ");
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
            one => format!("list of {}", form(one)),
        },
        (kind, _) => kind.unwrap_or("value").to_owned(),
    };
    what + &bounds
}

/// A doc comment as one line of a table, without its links into the code.
fn one_line(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default().replace("[`", "`").replace("`]", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written anew with `dormouse reference > testbed/REFERENCE.md`.
    #[test]
    fn the_page_in_the_tree_is_current() {
        let page = include_str!("../../REFERENCE.md");
        assert_eq!(page.trim_end(), reference().trim_end());
    }

    #[test]
    fn every_key_says_what_it_is() {
        fn silent(path: &str, schema: &Value, found: &mut Vec<String>) {
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{key}");
                if schema["description"].is_null() && schema["const"].is_null() {
                    found.push(path.clone());
                }
                silent(&path, schema, found);
            }
            for key in ["items", "additionalProperties"] {
                if schema[key].is_object() {
                    silent(path, &schema[key], found);
                }
            }
            for key in ["oneOf", "anyOf"] {
                for schema in schema[key].as_array().into_iter().flatten() {
                    silent(path, schema, found);
                }
            }
        }
        let mut found = Vec::new();
        silent("", &EXPERIMENT, &mut found);
        assert_eq!(found, [""; 0]);
    }
}
