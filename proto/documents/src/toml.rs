//! TOML parser that records the place of each value.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::error::Mistakes;
use crate::{InputError, Node, Place, Value};

/// Parses TOML; messages call the text `source`.
///
/// # Errors
///
/// All parts of the text that are not TOML, or can't be values of an experiment.
pub fn from_toml(source: &str, text: &str) -> Result<Node, InputError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = TomlPlaces { source: source.into(), text, mistakes: Mistakes::default() };
    for error in &errors {
        let place = match error.span() {
            Some(span) => reader.place_at(String::new(), span.start),
            None => Place::whole(source),
        };
        reader.mistakes.add(&place, error.message(), "mend the TOML there");
    }
    let place = Place::whole(source);
    let value = reader.read_value(&place, DeValue::Table(table.into_inner()));
    reader.mistakes.or(Some(Node { place, value }))
}

/// Finds the places of values in a TOML text, and collects mistakes.
struct TomlPlaces<'a> {
    source: Arc<str>,
    text: &'a str,
    mistakes: Mistakes,
}

impl TomlPlaces<'_> {
    /// The place of byte `at` of the text, with this path.
    fn place_at(&self, path: String, at: usize) -> Place {
        Place { path, ..Place::in_text(&self.source, self.text, at) }
    }

    fn read_value(&mut self, place: &Place, value: DeValue<'_>) -> Value {
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
                    let place = self.place_at(path, item.span().start);
                    let value = self.read_value(&place, item.into_inner());
                    Node { place, value }
                });
                Value::List(items.collect())
            }
            // A key is the better place for what is wrong with its value, and for what is missing there.
            DeValue::Table(table) => {
                let entries = table.into_iter().map(|(key, item)| {
                    let place = self.place_at(place.key(key.get_ref()).path, key.span().start);
                    let value = self.read_value(&place, item.into_inner());
                    (key.into_inner().into_owned(), Node { place, value })
                });
                Value::Table(entries.collect())
            }
        }
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
