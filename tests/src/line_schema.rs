//! The JSON schema of the lines between dormouse and a scheduler, and whether a value conforms.

use serde_json::Value;

use crate::dormouse_says;

/// The JSON schema that `dormouse schema --scheduler` prints.
#[derive(Debug)]
pub struct LineSchema(Value);

impl LineSchema {
    /// The schema that the program under test prints.
    ///
    /// # Panics
    ///
    /// The program prints no schema.
    #[must_use]
    pub fn printed() -> Self {
        let text = dormouse_says(&["schema", "--scheduler"]);
        Self(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// The words in the field `tag` by which the schema tells the variants of an enum apart: those of `Notice` are in
    /// `notice`, those of `Decision` in `decision`.
    #[must_use]
    pub fn words(&self, kind: &str, tag: &str) -> Vec<&str> {
        let kinds = self.0["$defs"][kind]["oneOf"].as_array().into_iter().flatten();
        let word = |kind| self.resolved(kind)["properties"][tag]["const"].as_str();
        kinds.filter_map(word).collect()
    }

    /// Checks that a value conforms to a definition of the schema.
    ///
    /// # Errors
    ///
    /// What in the value does not conform, and to which part of the schema.
    pub fn conforms(&self, definition: &str, value: &Value) -> Result<(), String> {
        let schema = &self.0["$defs"][definition];
        assert!(schema.is_object(), "the schema has no {definition}");
        self.fits(schema, value).map_err(|why| format!("no {definition}: {why}: {value}"))
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(path) => self.0.pointer(&path[1..]).unwrap_or_else(|| panic!("no {path}")),
            None => schema,
        }
    }

    /// Checks a value against a part of the schema. Only the keywords that this schema uses are known; any other is an
    /// error.
    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let keywords = schema.as_object().unwrap_or_else(|| panic!("{schema} is no schema"));
        let is_listed = |list: &Value| list.as_array().is_some_and(|all| all.contains(value));
        let matching = |kinds: &Value| {
            let kinds = kinds.as_array().into_iter().flatten();
            kinds.filter(|kind| self.fits(kind, value).is_ok()).count()
        };
        for (keyword, wanted) in keywords {
            let holds = match keyword.as_str() {
                "$ref" => {
                    self.fits(self.resolved(schema), value)?;
                    true
                }
                "type" => match wanted {
                    Value::Array(types) => types.iter().any(|wanted| is_of_type(value, wanted)),
                    only => is_of_type(value, only),
                },
                "const" => value == wanted,
                "enum" => is_listed(wanted),
                "minimum" => value.as_f64() >= wanted.as_f64(),
                "anyOf" => matching(wanted) > 0,
                "oneOf" => matching(wanted) == 1,
                "required" => {
                    let keys = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                    keys.into_iter().all(|key| value.get(key).is_some())
                }
                "items" => {
                    let items = value.as_array().into_iter().flatten();
                    items.into_iter().try_for_each(|item| self.fits(wanted, item))?;
                    true
                }
                "properties" => {
                    for (key, schema) in wanted.as_object().into_iter().flatten() {
                        let inside =
                            value.get(key).map_or(Ok(()), |value| self.fits(schema, value));
                        inside.map_err(|why| format!("{key}: {why}"))?;
                    }
                    true
                }
                "additionalProperties" => {
                    let known = &schema["properties"];
                    let all = value.as_object().into_iter().flatten();
                    let mut others = all.filter(|(key, _)| known.get(key).is_none());
                    match wanted {
                        Value::Bool(may) => *may || others.next().is_none(),
                        schema => {
                            others.try_for_each(|(_, value)| self.fits(schema, value))?;
                            true
                        }
                    }
                }
                "title" | "description" | "default" | "format" => true,
                other => panic!("the schema has the keyword {other}, which is not checked"),
            };
            if !holds {
                return Err(format!("{keyword} {wanted} does not hold"));
            }
        }
        Ok(())
    }
}

fn is_of_type(value: &Value, wanted: &Value) -> bool {
    match wanted.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => panic!("the schema has the type {wanted}, which is not checked"),
    }
}
