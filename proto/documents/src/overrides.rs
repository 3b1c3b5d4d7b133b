//! Overrides of a document's keys from the command line: `--set key=value`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;

use crate::{InputError, Mistakes, Node, Place, Value, from_toml};

/// An override of one key, with the option that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The option, for messages, such as `--seed`.
    pub option: &'static str,
    /// The key's path, such as `interruption.0.k-hibernate`.
    pub path: String,
    /// The value as it was written: TOML or bare text.
    pub value: String,
}

impl Override {
    /// Parses the argument of `--set path=value`.
    ///
    /// # Errors
    ///
    /// The text has no `=`.
    pub fn set(text: &str) -> Result<Self, InputError> {
        let (path, value) = text.split_once('=').ok_or_else(|| {
            let what = format!("'{text}' is not a key with a value");
            InputError::new(
                &Place::whole("--set"),
                what,
                "write KEY=VALUE, such as scheduler.alpha=0.7",
            )
        })?;
        Ok(Self { option: "--set", path: path.trim().to_owned(), value: value.trim().to_owned() })
    }

    /// An override by `option` that sets `path` to this text.
    #[must_use]
    pub fn text(option: &'static str, path: &str, value: &str) -> Self {
        let quoted = toml::Value::String(value.to_owned()).to_string();
        Self { option, path: path.to_owned(), value: quoted }
    }

    /// Sets the override's value in a document of this schema, replacing the old value. `aliases` are pairs of an
    /// alternative first key of a path and the key that it stands for.
    ///
    /// # Errors
    ///
    /// The document has no place with the override's path, or the value can't be read.
    pub fn apply(
        &self,
        root: &mut Node,
        mut schema: &Json,
        aliases: &[(&str, &str)],
    ) -> Result<(), InputError> {
        let mut keys = self.path_keys()?;
        if let Some(first) = keys.first_mut()
            && let Some((_, key)) = aliases.iter().find(|(alias, _)| alias == first)
        {
            *first = (*key).to_owned();
        }
        let mut at = root;
        for key in &keys {
            schema = match schema["type"].as_str() {
                Some("array") => &schema["items"],
                _ => &schema["properties"][key],
            };
            at = self.step_into(at, key, schema["type"] == "array")?;
        }
        at.value = self.parse_value()?;
        let place = Place { path: keys.join("."), ..Place::whole(self.option) };
        relabel_places(at, &place);
        Ok(())
    }

    fn path_keys(&self) -> Result<Vec<String>, InputError> {
        let bad = || {
            let what = format!("'{}' is not the path of a key", self.path);
            InputError::new(&Place::whole(self.option), what, "write it like scheduler.alpha")
        };
        let mut node = from_toml("--set", &format!("{} = 0", self.path)).map_err(|_| bad())?;
        let mut keys = Vec::new();
        while let Value::Table(table) = node.value {
            let (key, inner) = table.into_iter().next().ok_or_else(bad)?;
            keys.push(key);
            node = inner;
        }
        Ok(keys)
    }

    /// The child of `at` with this key; a missing one is created, as a list if `is_list`.
    fn step_into<'a>(
        &self,
        at: &'a mut Node,
        key: &str,
        is_list: bool,
    ) -> Result<&'a mut Node, InputError> {
        let place = Place { path: at.place.path.clone(), ..Place::whole(self.option) };
        let empty = |value| Node { place: place.key(key), value };
        if matches!(at.value, Value::Other("nothing")) {
            at.value = Value::Table(BTreeMap::new());
        }
        match &mut at.value {
            Value::Table(table) => {
                let value = if is_list { Value::List(Vec::new()) } else { Value::Other("nothing") };
                Ok(table.entry(key.to_owned()).or_insert_with(|| empty(value)))
            }
            Value::List(list) => {
                let count = list.len();
                let out = || {
                    let what =
                        format!("'{key}' is not the number of one of the {count} entries there");
                    InputError::new(&place, what, format!("write a number from 0 to {count}"))
                };
                let index: usize = key.parse().map_err(|_| out())?;
                if index == count {
                    list.push(empty(Value::Other("nothing")));
                }
                list.get_mut(index).ok_or_else(out)
            }
            other => {
                let what = format!("{} has no '{key}' inside", other.what());
                Err(InputError::new(&place, what, "name a key of a table"))
            }
        }
    }

    fn parse_value(&self) -> Result<Value, InputError> {
        let as_toml = from_toml(self.option, &format!("{VALUE} = {}", self.value));
        match as_toml.map(|node| node.value) {
            Ok(Value::Table(mut table)) if table.len() == 1 => {
                Ok(table.remove(VALUE).map_or(Value::Other("nothing"), |node| node.value))
            }
            // The value is TOML, but a number out of range.
            Err(error) if error.mistakes().iter().all(|one| one.place.path == VALUE) => {
                let place = Place { path: self.path.clone(), ..Place::whole(self.option) };
                let mut found = Mistakes::default();
                for one in error.mistakes() {
                    found.add(&place, &one.what, &one.remedy);
                }
                found.or(None)
            }
            _ => Ok(Value::Text(self.value.clone())),
        }
    }
}

/// Prints the form `path=value`.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

const VALUE: &str = "value";

/// Replaces the place of a node, and of all nodes inside it, by a place on the command line.
fn relabel_places(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::List(list) => {
            for (n, item) in list.iter_mut().enumerate() {
                relabel_places(item, &place.key(&n.to_string()));
            }
        }
        Value::Table(table) => {
            for (key, item) in table {
                relabel_places(item, &place.key(key));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_replaces_what_was_there_or_has_a_place_made_for_it() {
        let list = json!({ "type": "array", "items": { "type": "object" } });
        let schema = json!({ "type": "object", "properties": { "l": list,
            "t": { "type": "object", "properties": { "l": list } } } });
        let set = |texts: &[&str]| {
            let mut root = from_toml("x.toml", "a = 1\nl = [{ b = 1 }]\n").unwrap();
            for text in texts {
                Override::set(text)?.apply(&mut root, &schema, &[("alpha", "a")])?;
            }
            Ok::<_, InputError>(root.json())
        };
        let one = json!({ "a": 1, "l": [{ "b": 1 }] });
        assert_eq!(set(&[]).unwrap(), one);
        let all = set(&["alpha=word", "l.0.b=[2]", "l.1.b=3", "t.l.0.c=\"4\"", "n.m=1.5"]).unwrap();
        assert_eq!(
            all,
            json!({ "a": "word", "l": [{ "b": [2] }, { "b": 3 }], "t": { "l": [{ "c": "4" }] },
                "n": { "m": 1.5 } })
        );
        for (text, says) in [
            (
                "l.3.b=1",
                "--set: l: '3' is not the number of one of the 1 entries there; write a number from 0 to 1",
            ),
            ("a.b=1", "--set: a: 1 has no 'b' inside"),
            ("=1", "--set: '' is not the path of a key"),
            ("a", "--set: 'a' is not a key with a value"),
            ("a=1e999", "--set: a: 1e999 is not a finite number"),
        ] {
            let error = set(&[text]).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
