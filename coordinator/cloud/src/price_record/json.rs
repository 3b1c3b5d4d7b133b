//! Parser of entries in the response of the provider's price-history call.

use std::borrow::Cow;
use std::fmt;

use dormouse_input::{Chosen, FileFlaw};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::COLUMNS;

/// Keys found in entries, each with its column and the key's rank among the names of that column.
#[derive(Debug)]
pub(super) struct ColumnKeys<'c> {
    chosen: &'c Chosen,
    known: Vec<(String, Option<(usize, usize)>)>,
}

/// Texts of an entry in the order of [`COLUMNS`]; `None`: the entry lacks the key.
pub(super) type Entry<'a> = [Option<Cow<'a, str>>; 5];

impl<'c> ColumnKeys<'c> {
    pub(super) const fn new(chosen: &'c Chosen) -> Self {
        Self { chosen, known: Vec::new() }
    }

    /// Checks that each key chosen by the user occurred in some entry.
    pub(super) fn all_are_there(&self) -> Result<(), FileFlaw> {
        let is_there =
            |key: &str| self.known.iter().any(|(known, _)| plain_key(known) == plain_key(key));
        let mut chosen = self.chosen.iter().map(|(_, key)| key);
        let Some(key) = chosen.find(|key| !self.known.is_empty() && !is_there(key)) else {
            return Ok(());
        };
        let has: Vec<_> = self.known.iter().take(12).map(|(key, _)| format!("'{key}'")).collect();
        let what = format!("no entry has the key '{key}'");
        Err(FileFlaw::whole(what, format!("they have {}", has.join(", "))))
    }

    /// Parses one entry of the price history.
    pub(super) fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Entry<'a>, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let entry = self.deserialize(&mut reader)?;
        reader.end()?;
        Ok(entry)
    }

    fn find_column(&mut self, key: &str) -> Option<(usize, usize)> {
        if let Some((_, column)) = self.known.iter().find(|(known, _)| known == key) {
            return *column;
        }
        let plain = plain_key(key);
        let chosen = |name: &str| {
            let mut all = self.chosen.iter();
            all.find(|(chosen, _)| *chosen == name).map(|(_, heading)| self::plain_key(heading))
        };
        let rank = |column: &dormouse_input::WantedColumn| match chosen(column.name) {
            Some(heading) => (heading == plain).then_some(0),
            None => column.known_as.iter().position(|name| self::plain_key(name) == plain),
        };
        let column = COLUMNS.iter().enumerate().find_map(|(n, column)| Some((n, rank(column)?)));
        self.known.push((key.to_owned(), column));
        column
    }
}

/// A key in lower case without separators, for comparison.
fn plain_key(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl<'a> DeserializeSeed<'a> for &mut ColumnKeys<'_> {
    type Value = Entry<'a>;

    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<Entry<'a>, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for &mut ColumnKeys<'_> {
    type Value = Entry<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a Timestamp and a SpotPrice")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Entry<'a>, M::Error> {
        let (mut entry, mut ranks) = (Entry::default(), [usize::MAX; 5]);
        while let Some(JsonText(key)) = map.next_key()? {
            let column = key.as_deref().and_then(|key| self.find_column(key));
            match column {
                Some((n, rank)) if rank < ranks[n] => {
                    (entry[n], ranks[n]) = (map.next_value::<JsonText<'_>>()?.0, rank);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(entry)
    }
}

/// A text or a number from JSON, as text; `None`: any other value.
struct JsonText<'a>(Option<Cow<'a, str>>);

impl<'a> serde::Deserialize<'a> for JsonText<'a> {
    fn deserialize<D: Deserializer<'a>>(reader: D) -> Result<Self, D::Error> {
        struct AnyJson;
        impl<'a> Visitor<'a> for AnyJson {
            type Value = JsonText<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(text.into())))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(text.to_owned().into())))
            }

            fn visit_f64<E>(self, number: f64) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(number.to_string().into())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(number.to_string().into())))
            }

            fn visit_i64<E>(self, number: i64) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(number.to_string().into())))
            }

            fn visit_bool<E>(self, is: bool) -> Result<JsonText<'a>, E> {
                Ok(JsonText(Some(is.to_string().into())))
            }

            fn visit_unit<E>(self) -> Result<JsonText<'a>, E> {
                Ok(JsonText(None))
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<JsonText<'a>, M::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(JsonText(None))
            }

            fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<JsonText<'a>, S::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(JsonText(None))
            }
        }
        reader.deserialize_any(AnyJson)
    }
}
