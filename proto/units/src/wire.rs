//! Quantities in logs and in lines of protocols: integers of a small unit.
//!
//! The JSON schemas of the quantities describe what people write ([`crate::written`]). [`as_integers`] turns a schema
//! with such quantities into a schema of the integers that serde reads and writes.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value, json};

/// All quantities. For each: its format in a schema of what people write, the name of its definition, its type (or the
/// format of an integer), and the meaning of the value.
const QUANTITIES: [(&str, &str, &str, &str); 6] = [
    ("time", "Span", "uint64", "A length of emulated time, in microseconds."),
    ("memory", "Bytes", "uint64", "An amount of memory, in bytes."),
    ("dollars an hour", "Price", "uint64", "A price, in billionths of a US dollar an hour."),
    ("part", "Ppm", "uint32", "A part of a whole, in millionths."),
    (
        "credits",
        "Credits",
        "uint64",
        "CPU credits, in microseconds of one vCPU: 60,000,000 are one credit.",
    ),
    ("instance type", "TypeName", "string", "The name of an instance type, such as c3.large."),
];

/// Replaces each quantity in a schema, described as people write it, by a reference to its definition among
/// [`quantity_definitions`].
pub fn as_integers(schema: &mut Schema) {
    transform_subschemas(&mut as_integers, schema);
    let format = schema.get("format").and_then(Value::as_str);
    let Some((_, name, ..)) = QUANTITIES.iter().find(|(known, ..)| Some(*known) == format) else {
        return;
    };
    let reference = json!({ "$ref": format!("#/$defs/{name}") });
    let is_optional = schema.get("type").is_some_and(Value::is_array);
    let keys = schema.ensure_object();
    keys.retain(|key, _| key == "description" || key == "default");
    if is_optional {
        keys.insert("anyOf".to_owned(), json!([reference, { "type": "null" }]));
    } else {
        keys.insert("$ref".to_owned(), reference["$ref"].clone());
    }
}

/// The definitions of all quantities, by name.
#[must_use]
pub fn quantity_definitions() -> Map<String, Value> {
    let defined = |(_, name, kind, description): &(_, &str, &str, &str)| {
        let schema = match *kind {
            "string" => json!({ "type": "string", "description": description }),
            format => json!({
                "type": "integer", "format": format, "minimum": 0, "description": description
            }),
        };
        ((*name).to_owned(), schema)
    };
    QUANTITIES.iter().map(defined).collect()
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::*;
    use crate::{Bytes, Credits, Ppm, Price, Span, TypeName};

    #[test]
    fn every_quantity_that_people_write_is_an_integer_here() {
        type All = (Span, Bytes, Price, Ppm, Credits, TypeName, Option<Span>);
        let mut schema = schema_for!(All);
        as_integers(&mut schema);
        let names = ["Span", "Bytes", "Price", "Ppm", "Credits", "TypeName"];
        let mut expected = names.map(|name| json!({ "$ref": format!("#/$defs/{name}") })).to_vec();
        expected.push(json!({ "anyOf": [{ "$ref": "#/$defs/Span" }, { "type": "null" }] }));
        assert_eq!(schema.get("prefixItems"), Some(&json!(expected)));
        assert_eq!(quantity_definitions().keys().collect::<Vec<_>>(), names);
    }
}
