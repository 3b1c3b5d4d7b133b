//! Documents as trees of values that know where they came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))
}

/// Parses TOML; `source` names it in messages.
pub(crate) fn from_toml(source: &str, text: &str) -> Result<Node, InputError> {
    let parser = TomlPlaces { source: source.into(), lines: Lines::of(text) };
    match DeTable::parse(text) {
        Ok(table) => {
            let root = Place::of(source);
            let span = table.span();
            parser.node(&root, span, DeValue::Table(table.into_inner()))
        }
        Err(error) => {
            let mut place = Place::of(source);
            place.at = error.span().map(|span| parser.lines.at(span.start));
            Err(InputError::new(&place, error.message(), "mend the TOML there"))
        }
    }
}

struct TomlPlaces {
    source: Arc<str>,
    lines: Lines,
}

impl TomlPlaces {
    fn node(
        &self,
        place: &Place,
        span: std::ops::Range<usize>,
        value: DeValue<'_>,
    ) -> Result<Node, InputError> {
        let at = (!place.path.is_empty()).then(|| self.lines.at(span.start));
        let place = Place { source: self.source.clone(), at, path: place.path.clone() };
        let number = || "write a smaller, finite number";
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(n) => {
                Value::Integer(i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| {
                    InputError::new(&place, format!("{} is too large", n.as_str()), number())
                })?)
            }
            DeValue::Float(x) => match x.as_str().parse::<f64>() {
                Ok(x) if x.is_finite() => Value::Float(x),
                _ => {
                    let what = format!("{} is not a finite number", x.as_str());
                    return Err(InputError::new(&place, what, number()));
                }
            },
            DeValue::Boolean(flag) => Value::Flag(flag),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(list) => Value::List(
                list.into_iter()
                    .enumerate()
                    .map(|(n, item)| self.inner(&place.key(&n.to_string()), item))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => Value::Table(
                table
                    .into_iter()
                    .map(|(key, item)| {
                        let mut inner = place.key(key.get_ref());
                        let key_at = self.lines.at(key.span().start);
                        inner.at = Some(key_at);
                        let mut node = self.inner(&inner, item)?;
                        // A key is the better place for what is wrong with its whole section.
                        if matches!(node.value, Value::Table(_) | Value::List(_)) {
                            node.place.at = Some(key_at);
                        }
                        Ok((key.into_inner().into_owned(), node))
                    })
                    .collect::<Result<_, InputError>>()?,
            ),
        };
        Ok(Node { place, value })
    }

    fn inner(&self, place: &Place, item: Spanned<DeValue<'_>>) -> Result<Node, InputError> {
        let span = item.span();
        self.node(place, span, item.into_inner())
    }
}

/// A document's text, to tell lines and columns of its bytes.
struct Lines {
    text: String,
}

impl Lines {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// Line and column (in characters) of a byte, from 1.
    fn at(&self, byte: usize) -> (usize, usize) {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        (line, before[start..].chars().count() + 1)
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

/// The folder that relative paths inside a document start from.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
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
        assert_eq!(scheduler["alpha"].place.to_string(), "x.toml:3:11: scheduler.alpha");
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in ["x = nan", "x = inf", "x = 1e999", "x = 99999999999999999999"] {
            let error = from_toml("x.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("x.toml:1:5: x: "), "{error}");
        }
        let error = from_toml("x.toml", "a = 1\na = 2\n").unwrap_err().to_string();
        assert!(error.contains("x.toml:2:1: duplicate key"), "{error}");
    }
}
