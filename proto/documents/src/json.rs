//! JSON parser that records the place of each value.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::{InputError, Node, Place, Value};

/// Parses JSON; messages call the text `source`.
///
/// # Errors
///
/// The text is not JSON; the error's place is where the text stops being JSON.
pub fn from_json(source: &str, text: &str) -> Result<Node, InputError> {
    let wrong = |error: serde_json::Error| not_json(source, text, &error);
    // The numbers and the depth of all of it are looked at here.
    serde_json::from_str::<Json>(text).map_err(wrong)?;
    let root = serde_json::from_str::<&RawValue>(text).map_err(wrong)?;
    let mut reader = JsonReader { text, at: 0, place: Place::in_text(source, text, 0) };
    let place = Place::whole(source);
    let value = reader.read_value(&place, root.get()).map_err(wrong)?;
    Ok(Node { place, value })
}

/// The error for a text that is not JSON, made from serde's error.
pub fn not_json(source: &str, text: &str, error: &serde_json::Error) -> InputError {
    let what = format!("not valid JSON: {error}");
    InputError::new(&place_of(source, text, error), what, "correct the file, or download it again")
}

/// The place that an error of serde names.
#[must_use]
pub fn place_of(source: &str, text: &str, error: &serde_json::Error) -> Place {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    Place::in_text(source, text, start + error.column().saturating_sub(1))
}

/// Converts a JSON text to values with their places.
struct JsonReader<'a> {
    text: &'a str,
    /// Byte offset of the last computed `place`.
    at: usize,
    place: Place,
}

impl<'a> JsonReader<'a> {
    /// The place of byte `at`, which must not be before the `at` of the last call: so a text is scanned only once, in
    /// however many lines it is.
    fn place_at(&mut self, path: String, at: usize) -> Place {
        let between = self.text.get(self.at..at).unwrap_or_default();
        let (line, column) = self.place.at.unwrap_or((1, 1));
        self.place.at = match between.rfind('\n') {
            None => Some((line, column + between.chars().count())),
            Some(last) => {
                let begins = self.text.get(self.at + last + 1..).unwrap_or_default();
                self.place.line = Some(begins.lines().next().unwrap_or_default().into());
                let column = between[last + 1..].chars().count() + 1;
                Some((line + between.matches('\n').count(), column))
            }
        };
        self.at = at;
        Place { path, ..self.place.clone() }
    }

    /// Byte offset in the whole text at which the slice `part` of it begins.
    fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    fn read_value(&mut self, place: &Place, raw: &'a str) -> serde_json::Result<Value> {
        match raw.as_bytes().first() {
            Some(b'{') => {
                let mut table = BTreeMap::new();
                let mut before = self.offset_of(raw);
                for (key, value) in serde_json::from_str::<ObjectKeys<'a>>(raw)?.0 {
                    // Between two values there is nothing in quotes but a key.
                    let rest = self.text.get(before..).unwrap_or_default();
                    let at = before + rest.find('"').unwrap_or_default();
                    let place = self.place_at(place.key(&key).path, at);
                    before = self.offset_of(value.get()) + value.get().len();
                    let value = self.read_value(&place, value.get())?;
                    table.insert(key, Node { place, value });
                }
                Ok(Value::Table(table))
            }
            Some(b'[') => {
                let items = serde_json::from_str::<Vec<&'a RawValue>>(raw)?.into_iter().enumerate();
                let items = items.map(|(n, item)| {
                    let at = self.offset_of(item.get());
                    let place = self.place_at(place.key(&n.to_string()).path, at);
                    let value = self.read_value(&place, item.get())?;
                    Ok(Node { place, value })
                });
                items.collect::<serde_json::Result<_>>().map(Value::List)
            }
            _ => Ok(plain_value(serde_json::from_str(raw)?)),
        }
    }
}

/// Converts a value that is neither a table nor a list.
fn plain_value(value: Json) -> Value {
    match value {
        Json::Bool(flag) => Value::Flag(flag),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Value::Integer(n),
            (None, Some(x)) if x.is_finite() => Value::Float(x),
            _ => Value::Other("a number out of range"),
        },
        Json::String(text) => Value::Text(text),
        _ => Value::Other("null"),
    }
}

/// Keys of an object in order, each with the text of its value.
struct ObjectKeys<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectKeys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectKeys(Vec::new()))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for ObjectKeys<'a> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Self, M::Error> {
        while let Some(entry) = map.next_entry()? {
            self.0.push(entry);
        }
        Ok(self)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    const TEXT: &str =
        "{ \"a:\\\"b\": [1,\n  { \"c\" : \"{\\\"x\\\"\", \"é\": {}, \"d\":-1.5e3 }\n]\n}\n";

    #[test]
    fn every_value_knows_its_line() {
        let node = from_json("x.json", TEXT).unwrap();
        let list = node.get("a:\"b").unwrap();
        assert_eq!(list.place.to_string(), "x.json:1:3: a:\"b");
        let inside = list.innermost("1");
        assert_eq!(inside.place.at, Some((2, 3)));
        let at = |key: &str| inside.get(key).unwrap().place.at;
        assert_eq!([at("c"), at("é"), at("d")], [(2, 5), (2, 21), (2, 30)].map(Some));
        assert_eq!(inside.place.line, inside.get("d").unwrap().place.line);
        assert_eq!(node.json(), serde_json::from_str::<Json>(TEXT).unwrap());
    }

    /// Files of workflows have hundreds of thousands of lines: scanning all lines before each value would never end.
    #[test]
    fn the_last_of_many_lines_is_known_by_its_number() {
        let text = format!("[\n{}\n  {{\"é\":\n\n 7}}]", "  1,\n".repeat(200_000));
        let last = from_json("x.json", &text).unwrap().innermost("200000").clone();
        assert_eq!(last.place.at, Some((200_003, 3)));
        assert_eq!(last.get("é").unwrap().place.at, Some((200_003, 4)));
        assert_eq!(last.place.line.as_deref(), Some("  {\"é\":"));
    }

    #[test]
    fn what_is_no_json_has_its_line_and_a_caret() {
        for (from, to, at) in [
            ("1,", "1,,", "1:15"),
            ("}\n]", "}\n", "4:1"),
            ("\"d\":", "\"d\"", "2:33"),
            ("-1.5e3", "1e999", "2:3"),
            ("]\n}\n", "]\n", "4:1"),
        ] {
            let error = from_json("x.json", &TEXT.replacen(from, to, 1)).unwrap_err();
            let start = format!("x.json:{at}");
            assert!(error.to_string().starts_with(&start), "{to}: {error}");
            assert!(error.to_string().contains(": not valid JSON: "), "{error}");
            assert!(error.with_lines().ends_with('^'), "{error}");
        }
        let deep = "[".repeat(100_000);
        assert!(from_json("x.json", &deep).unwrap_err().to_string().contains("recursion limit"));
        assert!(from_json("x.json", "").unwrap_err().to_string().starts_with("x.json:1:1: "));
    }
}
