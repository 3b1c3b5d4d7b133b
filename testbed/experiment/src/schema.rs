//! JSON schema of an experiment file, generated from the types of its sections, and the reference
//! generated from the schema.

use std::sync::LazyLock;

use dormouse_documents::schema_of;
use serde_json::Value;

use super::sections::File;

/// Schema of an experiment file; editors complete from it.
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

Times are texts with a unit (`us`, `ms`, `s`, `m`, `h`, `d`): `\"45m\"`, `\"1h30m\"`. So is memory (`B`, `kB`,
`MB`, `GB`, `KiB`, `MiB`, `GiB`): `\"3.75 GiB\"`. Prices are dollars an hour, parts are numbers of which 1 is
the whole, a credit is a vCPU at full speed for a minute. Files are relative to the experiment's. Any key can
be set on the command line: `--set scheduler.alpha=0.7`, `--set interruption.0.k-hibernate=3`.
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
