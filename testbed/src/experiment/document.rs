//! Documents as trees of values that know where they came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::Mistakes;
use super::{InputError, Place};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// What an experiment can hold.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    /// A date or null: never right.
    Other(&'static str),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Text(text) => format!("'{}'", text.chars().take(60).collect::<String>()),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Other(kind) => (*kind).to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

impl Node {
    /// The value of this key, if it is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.get(key),
            _ => None,
        }
    }

    /// The place of a key inside, by its path, or where it would be: that of the innermost table or
    /// list on the way.
    pub(crate) fn place_of(&self, path: &str) -> &Place {
        &self.innermost(path).place
    }

    /// The node of a path inside, or the last there is on the way to it.
    pub(crate) fn innermost(&self, path: &str) -> &Self {
        let mut at = self;
        for key in path.split('.') {
            let next = match &at.value {
                Value::List(list) => key.parse().ok().and_then(|n: usize| list.get(n)),
                _ => at.get(key),
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }

    /// The text of this key, if it is one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// It without its places.
    pub(crate) fn json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(n) => Json::from(*n),
            Value::Float(x) => Json::from(*x),
            Value::Flag(flag) => Json::from(*flag),
            Value::Other(_) => Json::Null,
            Value::List(list) => list.iter().map(Self::json).collect(),
            Value::Table(table) => {
                table.iter().map(|(key, node)| (key.clone(), node.json())).collect()
            }
        }
    }
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))
}

/// Parses TOML; `source` names it in messages.
///
/// # Errors
///
/// All that is not TOML, or no value of an experiment.
pub(crate) fn from_toml(source: &str, text: &str) -> Result<Node, InputError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = TomlPlaces { source: source.into(), text, mistakes: Mistakes::default() };
    for error in &errors {
        let place = match error.span() {
            Some(span) => reader.place(String::new(), span.start),
            None => Place::of(source),
        };
        reader.mistakes.add(&place, error.message(), "mend the TOML there");
    }
    let place = Place::of(source);
    let value = reader.value(&place, DeValue::Table(table.into_inner()));
    reader.mistakes.or(Some(Node { place, value }))
}

struct TomlPlaces<'a> {
    source: Arc<str>,
    text: &'a str,
    mistakes: Mistakes,
}

impl TomlPlaces<'_> {
    /// The place of the byte `at`.
    fn place(&self, path: String, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let number = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let column = before[start..].chars().count() + 1;
        let line = self.text[start..].lines().next().unwrap_or_default();
        let (at, line) = (Some((number, column)), Some(line.into()));
        Place { source: self.source.clone(), at, path, line }
    }

    fn value(&mut self, place: &Place, value: DeValue<'_>) -> Value {
        let remedy = "write a smaller, finite number";
        match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(n) => {
                let read = i64::from_str_radix(n.as_str(), n.radix());
                Value::Integer(read.unwrap_or_else(|_| {
                    self.mistakes.add(place, format!("{} is too large", n.as_str()), remedy);
                    0
                }))
            }
            DeValue::Float(x) => {
                let read = x.as_str().parse::<f64>().ok().filter(|x| x.is_finite());
                Value::Float(read.unwrap_or_else(|| {
                    let what = format!("{} is not a finite number", x.as_str());
                    self.mistakes.add(place, what, remedy);
                    0.0
                }))
            }
            DeValue::Boolean(flag) => Value::Flag(flag),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(list) => {
                let items = list.into_iter().enumerate().map(|(n, item)| {
                    let path = place.key(&n.to_string()).path;
                    let place = self.place(path, item.span().start);
                    let value = self.value(&place, item.into_inner());
                    Node { place, value }
                });
                Value::List(items.collect())
            }
            // A key is the better place for what is wrong with its value, and for what is missing there.
            DeValue::Table(table) => {
                let entries = table.into_iter().map(|(key, item)| {
                    let place = self.place(place.key(key.get_ref()).path, key.span().start);
                    let value = self.value(&place, item.into_inner());
                    (key.into_inner().into_owned(), Node { place, value })
                });
                Value::Table(entries.collect())
            }
        }
    }
}

/// Parses a JSON file; errors inside are named by path, those of the syntax by line.
pub(crate) fn from_json(path: &Path) -> Result<Node, InputError> {
    let text = read(path)?;
    let mut place = Place::of(&path.display().to_string());
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        place.at = Some((error.line(), error.column()));
        InputError::new(
            &place,
            format!("not valid JSON: {error}"),
            "mend the file, or fetch it again",
        )
    })?;
    Ok(json_node(place, value))
}

fn json_node(place: Place, value: serde_json::Value) -> Node {
    let value = match value {
        serde_json::Value::Null => Value::Other("null"),
        serde_json::Value::Bool(flag) => Value::Flag(flag),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Value::Integer(n),
            (None, Some(x)) if x.is_finite() => Value::Float(x),
            _ => Value::Other("a number out of range"),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(list) => Value::List(
            list.into_iter()
                .enumerate()
                .map(|(n, item)| json_node(place.key(&n.to_string()), item))
                .collect(),
        ),
        serde_json::Value::Object(table) => Value::Table(
            table
                .into_iter()
                .map(|(key, item)| {
                    let inner = place.key(&key);
                    (key, json_node(inner, item))
                })
                .collect(),
        ),
    };
    Node { place, value }
}

/// The file that a text at `place` names: relative to the experiment file that it stands in. Options of
/// the command line name paths from where one is.
pub(crate) fn path_of(text: &str, place: &Place) -> PathBuf {
    match (place.at, Path::new(&*place.source).parent()) {
        (Some(_), Some(folder)) => folder.join(text),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let node = from_toml("x.toml", "seed = 1\n[scheduler]\n  alpha = 0.5\n").unwrap();
        let Value::Table(root) = &node.value else { panic!("a table") };
        let Value::Table(scheduler) = &root["scheduler"].value else { panic!("a table") };
        assert_eq!(scheduler["alpha"].place.to_string(), "x.toml:3:3: scheduler.alpha");
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in ["x = nan", "x = inf", "x = 1e999", "x = 99999999999999999999"] {
            let error = from_toml("x.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("x.toml:1:1: x: "), "{error}");
        }
        let error = from_toml("x.toml", "a = 1\na = 2\n").unwrap_err().to_string();
        assert!(error.contains("x.toml:2:1: duplicate key"), "{error}");
    }
}
