//! Typed access to the keys of a table; what is not asked for is an error.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use dormouse_units::{Bytes, Ppm, Price, Span};

use super::document::{Node, Value};
use super::suggest::instead;
use super::{InputError, Place};

type Read<T> = Result<Option<T>, InputError>;

/// A table being read. Call [`Section::finish`] when everything known has been asked for.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    place: Place,
    table: &'a BTreeMap<String, Node>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The table of `node`.
    pub(crate) fn of(node: &'a Node) -> Result<Self, InputError> {
        match &node.value {
            Value::Table(table) => Ok(Self { place: node.place.clone(), table, known: Vec::new() }),
            other => Err(InputError::new(
                &node.place,
                format!("{} is not a table", other.what()),
                "write its keys inside it",
            )),
        }
    }

    /// The table's place in its document, for messages.
    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// Where `key` stands, or would.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.table.get(key).map_or_else(|| self.place.key(key), |node| node.place.clone())
    }

    /// Whether `key` is given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Every key and its value, for tables whose keys are names.
    pub(crate) const fn entries(&self) -> &'a BTreeMap<String, Node> {
        self.table
    }

    /// The value of `key`.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.get(key)
    }

    /// The value of `key`, or what should stand there.
    pub(crate) fn need<T>(&self, key: &str, found: Option<T>, like: &str) -> Result<T, InputError> {
        found.ok_or_else(|| {
            let what = format!("'{key}' is missing");
            InputError::new(&self.place, what, format!("add it, such as: {key} = {like}"))
        })
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        like: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Read<T> {
        self.get(key).map(|node| convert(node, like, read)).transpose()
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &'static str) -> Read<&'a str> {
        self.get(key).map(text).transpose()
    }

    /// A length of time, such as `"45m"`.
    pub(crate) fn span(&mut self, key: &'static str) -> Read<Span> {
        self.get(key).map(span).transpose()
    }

    /// An amount of memory, such as `"3.75 GiB"`.
    pub(crate) fn bytes(&mut self, key: &'static str) -> Read<Bytes> {
        self.read(key, "a text with its unit, such as \"3.75 GiB\"", |value| match value {
            Value::Text(text) => {
                text.parse().map_err(|e: dormouse_units::ParseBytesError| e.to_string())
            }
            other => Err(format!("{} is not an amount of memory", other.what())),
        })
    }

    /// Dollars an hour.
    pub(crate) fn price(&mut self, key: &'static str) -> Read<Price> {
        self.read(key, "dollars an hour, such as 0.105", |value| {
            let usd = number(value)?;
            Price::from_usd_per_hour(usd).ok_or_else(|| format!("{usd} is not a price"))
        })
    }

    /// A number in a range.
    pub(crate) fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Read<f64> {
        let like = format!("a number from {} to {}", range.start(), range.end());
        self.read(key, &like, |value| {
            let x = number(value)?;
            if range.contains(&x) { Ok(x) } else { Err(format!("{x} is out of range")) }
        })
    }

    /// A fraction of a whole in a range.
    pub(crate) fn fraction(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Read<Ppm> {
        Ok(self.number(key, range)?.and_then(Ppm::from_f64))
    }

    /// A whole number in a range.
    pub(crate) fn whole(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Read<u64> {
        let like = format!("a whole number from {} to {}", range.start(), range.end());
        self.read(key, &like, |value| {
            let no = || format!("{} is not a whole number", value.what());
            let Value::Integer(n) = value else { return Err(no()) };
            match u64::try_from(*n) {
                Ok(n) if range.contains(&n) => Ok(n),
                _ => Err(format!("{n} is out of range")),
            }
        })
    }

    /// As [`Section::whole`] for numbers that fit 32 bits.
    pub(crate) fn count(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Read<u32> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        Ok(self.whole(key, wide)?.and_then(|n| u32::try_from(n).ok()))
    }

    /// One of a few words.
    pub(crate) fn choice<T: Clone>(&mut self, key: &'static str, words: &[(&str, T)]) -> Read<T> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let word = text(node)?;
        if let Some((_, found)) = words.iter().find(|(name, _)| *name == word) {
            return Ok(Some(found.clone()));
        }
        let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
        let what = format!("there is no {key} '{word}'");
        Err(InputError::new(&node.place, what, instead(word, &names)))
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, key: &'static str) -> Read<bool> {
        self.read(key, "true or false", |value| match value {
            Value::Flag(flag) => Ok(*flag),
            other => Err(format!("{} is neither true nor false", other.what())),
        })
    }

    /// A table.
    pub(crate) fn section(&mut self, key: &'static str) -> Read<Self> {
        self.get(key).map(Self::of).transpose()
    }

    /// A list, empty if absent.
    pub(crate) fn list(&mut self, key: &'static str) -> Result<&'a [Node], InputError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Node { value: Value::List(list), .. }) => Ok(list),
            Some(node) => Err(InputError::new(
                &node.place,
                format!("{} is not a list", node.value.what()),
                format!("write [[{}]] before each, or a list in brackets", node.place.path),
            )),
        }
    }

    /// Nothing else may be there.
    pub(crate) fn finish(self) -> Result<(), InputError> {
        for (key, node) in self.table {
            if !self.known.contains(&key.as_str()) {
                let what = format!("there is no key '{key}' here");
                return Err(InputError::new(&node.place, what, instead(key, &self.known)));
            }
        }
        Ok(())
    }
}

fn convert<T>(
    node: &Node,
    like: &str,
    read: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<T, InputError> {
    read(&node.value).map_err(|what| match what.split_once("; write ") {
        // The units' own errors say what would be right, and better.
        Some((what, right)) => InputError::new(&node.place, what, format!("write {right}")),
        None => InputError::new(&node.place, what, format!("write {like}")),
    })
}

/// A node that must be a text.
pub(crate) fn text(node: &Node) -> Result<&str, InputError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        other => {
            let what = format!("{} is not a text", other.what());
            Err(InputError::new(&node.place, what, "write it in quotes"))
        }
    }
}

/// A node that must be a list of two numbers in a range.
pub(crate) fn pair(node: &Node, range: RangeInclusive<f64>) -> Result<(f64, f64), InputError> {
    let like = format!("two numbers from {} to {} in brackets", range.start(), range.end());
    convert(node, &like, |value| match value {
        Value::List(list) => match list.as_slice() {
            [a, b] => {
                let (a, b) = (number(&a.value)?, number(&b.value)?);
                if range.contains(&a) && range.contains(&b) {
                    Ok((a, b))
                } else {
                    Err(format!("[{a}, {b}] is out of range"))
                }
            }
            list => Err(format!("a list of {} is not two numbers", list.len())),
        },
        other => Err(format!("{} is not two numbers", other.what())),
    })
}

/// A node that must be a list of parts of a whole, ascending, without its beginning and its end.
pub(crate) fn fractions(node: &Node) -> Result<Vec<Ppm>, InputError> {
    let like = "fractions of the work, ascending, each above 0 and below 1: [0.25, 0.5]";
    convert(node, like, |value| {
        let Value::List(list) = value else {
            return Err(format!("{} is not a list", value.what()));
        };
        let mut all: Vec<Ppm> = Vec::with_capacity(list.len());
        for node in list {
            let x = number(&node.value)?;
            let part = Ppm::from_f64(x).filter(|part| *part > Ppm::ZERO && *part < Ppm::ONE);
            let part = part.ok_or_else(|| format!("{x} is out of range"))?;
            if all.last().is_some_and(|last| *last >= part) {
                return Err(format!("{x} does not come after the one before it"));
            }
            all.push(part);
        }
        Ok(all)
    })
}

/// A node that must be a length of time.
pub(crate) fn span(node: &Node) -> Result<Span, InputError> {
    convert(node, "a text with its unit, such as \"45m\"", |value| match value {
        Value::Text(text) => {
            text.parse().map_err(|e: dormouse_units::ParseSpanError| e.to_string())
        }
        other => Err(format!("{} is not a length of time", other.what())),
    })
}

/// A node that must be a number of seconds.
pub(crate) fn seconds(node: &Node) -> Result<Span, InputError> {
    convert(node, "seconds, such as 349.0", |value| {
        let s = number(value)?;
        Span::from_secs_f64(s)
            .filter(|&s| s > Span::ZERO)
            .ok_or_else(|| format!("{s} s is no run time"))
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number a person wrote where fractions are allowed"
)]
fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(x) => Ok(*x),
        other => Err(format!("{} is not a number", other.what())),
    }
}
