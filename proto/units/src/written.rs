//! Quantities as people write them: `"45m"`, `"3.75 GiB"`, dollars, credits, parts of a whole.
//!
//! Logs contain the integers of these types, files that people write do not. [`read`] reads a value of such a file; the
//! JSON schemas of the types describe the value.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Visitor};
use serde_json::{Map, Value};

use crate::{Bytes, Credits, Ppm, Price, Span, TypeName, ZoneName};

/// Reason why a value can't be read as its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrittenError(String);

impl de::Error for WrittenError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self(what.to_string())
    }
}

/// Reads a value that a person wrote.
///
/// An enum of structs is read from a table, in which the key of the enum's serde name selects the variant:
/// `#[serde(rename = "kind")]` on the enum reads `{ kind = "bag", name = "j60" }`. (Serde's own `tag` loses the types
/// of the quantities inside.)
///
/// # Errors
///
/// The value does not have the form of the type.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, WrittenError> {
    T::deserialize(TaggedValue { value, tag: None })
}

/// A value to read, with the key of its table that has already been used to select an enum's variant; `None`: there
/// was no such key.
#[derive(Clone, Copy)]
struct TaggedValue<'de> {
    value: &'de Value,
    tag: Option<&'static str>,
}

impl<'de> TaggedValue<'de> {
    /// Reads the value as the type called `name`, if that is a quantity such as `Span` or `Price`: returns the integer
    /// that represents it. `None`: `name` is not a quantity.
    fn read_quantity(self, name: &str) -> Option<Result<u64, WrittenError>> {
        let text = || self.value.as_str().ok_or_else(|| WrittenError("it is not a text".into()));
        let number =
            || self.value.as_f64().ok_or_else(|| WrittenError("it is not a number".into()));
        let none = || WrittenError("it is out of range".into());
        Some(match name {
            "Span" => text().and_then(|text| {
                text.parse::<Span>().map(Span::as_micros).map_err(de::Error::custom)
            }),
            "Bytes" => text()
                .and_then(|text| text.parse::<Bytes>().map(Bytes::get).map_err(de::Error::custom)),
            "Price" => number().and_then(|usd| {
                Price::from_usd_per_hour(usd).map(Price::as_nanos_per_hour).ok_or_else(none)
            }),
            "Ppm" => number()
                .and_then(|x| Ppm::from_f64(x).map(|part| part.get().into()).ok_or_else(none)),
            "Credits" => number()
                .and_then(|x| Credits::from_f64(x).map(Credits::as_vcpu_micros).ok_or_else(none)),
            _ => return None,
        })
    }

    fn table_entries(
        self,
        table: &'de Map<String, Value>,
    ) -> impl Iterator<Item = (&'de str, Self)> {
        let inside = |value| Self { value, tag: None };
        let rest = table.iter().filter(move |(key, _)| Some(key.as_str()) != self.tag);
        rest.map(move |(key, value)| (key.as_str(), inside(value)))
    }
}

impl<'de> IntoDeserializer<'de, WrittenError> for TaggedValue<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for TaggedValue<'de> {
    type Error = WrittenError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrittenError> {
        match self.value {
            Value::Array(list) => {
                let inside = list.iter().map(|value| Self { value, tag: None });
                visitor.visit_seq(SeqDeserializer::new(inside))
            }
            Value::Object(table) => {
                visitor.visit_map(MapDeserializer::new(self.table_entries(table)))
            }
            plain => plain.deserialize_any(visitor).map_err(de::Error::custom),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrittenError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, WrittenError> {
        match self.read_quantity(name) {
            Some(kept) => visitor.visit_newtype_struct(kept?.into_deserializer()),
            None => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        tag: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrittenError> {
        let (word, rest) = match self.value {
            Value::Object(table) => (table.get(tag), Self { tag: Some(tag), ..self }),
            plain => (Some(plain), self),
        };
        let word = word.and_then(Value::as_str);
        let word = word.ok_or_else(|| WrittenError(format!("'{tag}' is missing")))?;
        visitor.visit_enum(Variant { word, rest })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Variant of an enum: its name, and the table with its fields.
struct Variant<'de> {
    word: &'de str,
    rest: TaggedValue<'de>,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = WrittenError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self), WrittenError> {
        let word: de::value::StrDeserializer<'_, WrittenError> = self.word.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'de> {
    type Error = WrittenError;

    fn unit_variant(self) -> Result<(), WrittenError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<S::Value, WrittenError> {
        seed.deserialize(self.rest)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, WrittenError> {
        de::Deserializer::deserialize_any(self.rest, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrittenError> {
        de::Deserializer::deserialize_any(self.rest, visitor)
    }
}

/// Describes a quantity inline in a schema, at each place that uses the quantity, instead of in a definition of its
/// own.
macro_rules! described {
    ($($name:ident: $schema:tt),+ $(,)?) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

described! {
    Span: {
        "type": "string",
        "format": "time",
        "pattern": r"^\s*([0-9.]+\s*(us|ms|s|sec|m|min|h|d)\s*)+$",
        "examples": ["45m"],
    },
    Bytes: {
        "type": "string",
        "format": "memory",
        "pattern": r"^\s*[0-9.]+\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)\s*$",
        "examples": ["3.75 GiB"],
    },
    Price: { "type": "number", "format": "dollars an hour", "minimum": 0.0, "examples": [0.105] },
    Ppm: { "type": "number", "format": "part", "minimum": 0.0, "maximum": 4294.0, "examples": [0.25] },
    Credits: { "type": "number", "format": "credits", "minimum": 0.0, "maximum": 1e6, "examples": [36] },
    TypeName: { "type": "string", "format": "instance type", "examples": ["c3.large"] },
    ZoneName: { "type": "string", "format": "zone", "examples": ["us-east-1a"] },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename = "kind", rename_all = "kebab-case")]
    enum Work {
        Bag(Bag),
        None,
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
    struct Bag {
        due_in: Option<Span>,
        memory: Bytes,
        price: Price,
        parts: Vec<Ppm>,
        credits: Credits,
    }

    #[test]
    fn quantities_are_read_as_written_wherever_they_are() {
        let value = json!({ "kind": "bag", "due-in": "45m", "memory": "2 KiB", "price": 1,
            "parts": [0.5, 1], "credits": 1.5 });
        let bag = Bag {
            due_in: Some(Span::from_secs(2_700)),
            memory: Bytes::new(2_048),
            price: Price::from_nanos_per_hour(1_000_000_000),
            parts: vec![Ppm::new(500_000), Ppm::ONE],
            credits: Credits::from_vcpu_micros(90_000_000),
        };
        assert_eq!(read(&value), Ok(Work::Bag(bag)));
        assert_eq!(read(&json!("none")), Ok(Work::None));
    }

    #[test]
    fn what_is_of_another_form_is_refused() {
        for (value, says) in [
            (json!({ "due-in": "45m" }), "'kind' is missing"),
            (json!({ "kind": "bug" }), "unknown variant `bug`"),
            (json!({ "kind": "bag", "dew-in": "45m" }), "unknown field `dew-in`"),
            (json!({ "kind": "bag", "due-in": 45 }), "not a text"),
            (json!({ "kind": "bag", "memory": "2" }), "unit is missing"),
            (json!({ "kind": "bag", "price": -1 }), "out of range"),
        ] {
            let error = read::<Work>(&value).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|error| error.contains(says)), "{value}: {error:?}");
        }
    }
}
