//! One value of a request or an answer, with the names of the service model's members.

use std::collections::BTreeMap;

/// A value by the service model: the input of a call, or its answer.
///
/// Keys of structures are the model's member names (`InstanceIds`), not the names on the wire
/// (`InstanceId.1` in a request, `instancesSet` in XML). An absent member is absent, never empty.
#[derive(Clone, Debug, PartialEq)]
pub enum WireValue {
    /// Members by name.
    Structure(BTreeMap<String, Self>),
    /// A list of values, in order.
    List(Vec<Self>),
    /// A string, or a value of an enumeration.
    Text(String),
    /// An integer or a long.
    Integer(i64),
    /// A float or a double.
    Float(f64),
    /// A boolean.
    Flag(bool),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// A blob; on the wire in base64.
    Bytes(Vec<u8>),
}

impl WireValue {
    /// A structure without members, for [`with`](Self::with).
    pub fn structure() -> Self {
        Self::Structure(BTreeMap::new())
    }

    /// This structure with one more member. Any other value stays as it is.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Self>) -> Self {
        self.set(name, value);
        self
    }

    /// This structure with one more member, if there is a value.
    #[must_use]
    pub fn with_some<V: Into<Self>>(self, name: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a member of a structure. Any other value stays as it is.
    pub fn set(&mut self, name: &str, value: impl Into<Self>) {
        if let Self::Structure(members) = self {
            members.insert(name.to_owned(), value.into());
        }
    }

    /// A list.
    pub fn list_of<V: Into<Self>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }

    /// The member with this name; `None` if this is no structure, or lacks the member.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Structure(members) => members.get(name),
            _ => None,
        }
    }

    /// The member at the end of this path (`InstanceMarketOptions`, `SpotOptions`, `MaxPrice`).
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, name| value.member(name))
    }

    /// All members by name; empty for any other value.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self {
            Self::Structure(members) => Some(members),
            _ => None,
        };
        members.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// The text of this member.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.member(name).and_then(Self::as_text)
    }

    /// The integer of this member.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.member(name)? {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The number of this member, whether an integer or not.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.member(name)? {
            Self::Float(value) => Some(*value),
            #[expect(clippy::cast_precision_loss, reason = "counts and bounds, far below 2^53")]
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The boolean of this member.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.member(name)? {
            Self::Flag(value) => Some(*value),
            _ => None,
        }
    }

    /// The instant of this member, in microseconds since 1970 (UTC).
    pub fn instant(&self, name: &str) -> Option<i64> {
        match self.member(name)? {
            Self::Instant(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of this member.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.member(name)? {
            Self::Bytes(value) => Some(value),
            _ => None,
        }
    }

    /// The values of the list that is the member `name`; empty if there is no member of that name.
    pub fn list(&self, name: &str) -> &[Self] {
        match self.member(name) {
            Some(Self::List(values)) => values,
            _ => &[],
        }
    }

    /// The texts in the list that is the member `name`; empty if there is no member of that name.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.list(name).iter().filter_map(Self::as_text).collect()
    }

    /// The text, if the value is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The kind of the value, as errors name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Structure(_) => "a structure",
            Self::List(_) => "a list",
            Self::Text(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Flag(_) => "a boolean",
            Self::Instant(_) => "an instant",
            Self::Bytes(_) => "bytes",
        }
    }
}

impl From<&str> for WireValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for WireValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<i64> for WireValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for WireValue {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for WireValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for WireValue {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<V: Into<Self>> From<Vec<V>> for WireValue {
    fn from(values: Vec<V>) -> Self {
        Self::list_of(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_find_members_of_their_kind_alone() {
        let value = WireValue::structure()
            .with("Name", "a")
            .with("Count", 3_i64)
            .with("Dry", true)
            .with("Ids", vec!["i-1", "i-2"])
            .with_some("None", None::<&str>)
            .with("Spot", WireValue::structure().with("MaxPrice", "0.05"));
        assert_eq!(value.text("Name"), Some("a"));
        assert_eq!(value.integer("Count"), Some(3));
        assert_eq!(value.float("Count"), Some(3.0));
        assert_eq!(value.flag("Dry"), Some(true));
        assert_eq!(value.texts("Ids"), ["i-1", "i-2"]);
        assert_eq!(value.at(&["Spot", "MaxPrice"]), Some(&WireValue::from("0.05")));
        assert_eq!(value.text("Count"), None);
        assert_eq!(value.member("None"), None);
        assert!(value.list("Name").is_empty());
        assert_eq!(value.members().count(), 5);
    }
}
