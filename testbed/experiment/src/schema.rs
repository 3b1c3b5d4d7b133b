//! JSON schema of an experiment file, generated from the types of its sections, and the reference
//! generated from the schema.

use std::sync::LazyLock;

use dormouse_documents::schema_of;
use serde_json::Value;

use super::sections::File;

/// JSON schema of an experiment file, from which editors offer completions.
pub(crate) static EXPERIMENT: LazyLock<Value> = LazyLock::new(schema_of::<File>);

/// JSON schema of an experiment file.
pub fn schema() -> &'static Value {
    &EXPERIMENT
}

/// The reference of all keys of an experiment file, as Markdown.
pub fn reference() -> String {
    // A tenant's keys are also an experiment's.
    dormouse_documents::reference(INTRODUCTION, &EXPERIMENT, "tenant")
}

const INTRODUCTION: &str = "\
# Experiment files

Made by `dormouse reference`; `dormouse schema` prints the same as a JSON schema, from which editors
complete: `dormouse schema > dormouse.schema.json`, and `#:schema dormouse.schema.json` as the first line
of a file.

Times are texts with a unit (`us`, `ms`, `s`, `m`, `h`, `d`): `\"45m\"`, `\"1h30m\"`. So are amounts of memory (`B`,
`kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`): `\"3.75 GiB\"`. Prices are dollars an hour. A part is a number of which 1 is
the whole. A credit is a vCPU at full speed for a minute. Paths are relative to the folder of the experiment file.
Any key can be set on the command line: `--set scheduler.alpha=0.7`, `--set interruption.0.k-hibernate=3`.

The default `needed` marks a key that its table always needs. A key without a default is needed in some cases only, or
never: its meaning says what holds without it; if it says nothing, what the key describes is not there.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// The generated reference equals the page in the source tree, which `scripts/book --update`
    /// writes.
    #[test]
    fn the_page_in_the_tree_is_current() {
        let page = include_str!("../../../docs/reference/keys.md");
        let made = page.split("\n## Where to go on").next().unwrap_or_default();
        // Long tables are folded there, by scripts/book-commands.
        let made: Vec<&str> = made.lines().filter(|line| !line.contains("details>")).collect();
        let made = made.join("\n").replace("\n\n\n", "\n\n");
        assert_eq!(made.trim_end(), reference().trim_end());
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
