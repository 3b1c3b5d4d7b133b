//! Documents as trees of values with their places.

use std::collections::BTreeMap;

use crate::Place;

/// A value with its place in the document.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value's file, line, column and path.
    pub place: Place,
    /// The value at this place of the document.
    pub value: Value,
}

/// Value in a document: a plain value, a list or a table.
#[derive(Clone, Debug)]
pub enum Value {
    /// A piece of text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A date or null, which are never valid values; the text says which of the two.
    Other(&'static str),
    /// A list of values, in order.
    List(Vec<Node>),
    /// A table of values, by key.
    Table(BTreeMap<String, Node>),
}

impl Value {
    /// Description of the value, for messages.
    #[must_use]
    pub fn what(&self) -> String {
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
    /// The value of this key; `None` if the node is not a table or lacks the key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.get(key),
            _ => None,
        }
    }

    /// Place of the key with this path inside the node, or of the innermost existing table or list
    /// on that path.
    #[must_use]
    pub fn place_of(&self, path: &str) -> &Place {
        &self.innermost(path).place
    }

    /// The node with this path inside this node, or the last existing node on that path.
    #[must_use]
    pub fn innermost(&self, path: &str) -> &Self {
        self.inside(path.split('.'))
    }

    /// The node under these keys, which may contain dots, or the last existing node on that path.
    #[must_use]
    pub fn inside<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> &Self {
        let mut at = self;
        for key in keys {
            let next = match &at.value {
                Value::List(list) => key.parse().ok().and_then(|n: usize| list.get(n)),
                _ => at.get(key),
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }

    /// The value of this key, if the value is a text; `None` otherwise.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as JSON, without the places.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
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
