//! One value of a request or an answer, with the names of the service model's members.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::MemberMap;
use crate::model::ShapeIndex;

/// A value by the service model: the input of a call, or its answer.
///
/// Keys of structures are the model's member names (`InstanceIds`), not the names on the wire
/// (`InstanceId.1` in a request, `instancesSet` in XML). An absent member is absent, never empty.
#[derive(Clone, Debug, PartialEq)]
pub enum WireValue {
    /// A structure: its members by name.
    Structure(MemberMap),
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
    /// A value that occurs in many answers, whose XML is written once and then reused.
    Shared(Arc<SharedValue>),
}

/// A value that many answers have. Its XML is kept from the first answer that is written with the value.
#[derive(Debug)]
pub struct SharedValue {
    value: WireValue,
    /// The shape as which the value was written, and its content as XML.
    xml: OnceLock<(ShapeIndex, String)>,
}

impl SharedValue {
    /// Makes a value that many answers share.
    #[must_use]
    pub const fn new(value: WireValue) -> Self {
        Self { value, xml: OnceLock::new() }
    }

    /// The value that is shared.
    pub const fn value(&self) -> &WireValue {
        &self.value
    }

    /// The value's XML text, without its element's tags, if it was written as this shape before; else `None`.
    pub(crate) fn written_as(&self, shape: ShapeIndex) -> Option<&str> {
        self.xml.get().filter(|(own, _)| *own == shape).map(|(_, text)| text.as_str())
    }

    /// Keeps the value's XML text (without its element's tags), written as this shape; if a text is kept already, nothing changes.
    pub(crate) fn keep_written(&self, shape: ShapeIndex, text: &str) {
        self.xml.get_or_init(|| (shape, text.to_owned()));
    }
}

impl PartialEq for SharedValue {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl WireValue {
    /// A structure without members, for [`with`](Self::with).
    pub fn structure() -> Self {
        Self::Structure(MemberMap::default())
    }

    /// This structure with one more member. Any other value stays as it is.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Self>) -> Self {
        self.set(name, value);
        self
    }

    /// This structure with one more member, if there is a value.
    #[must_use]
    pub fn with_some<V: Into<Self>>(
        self,
        name: impl Into<Cow<'static, str>>,
        value: Option<V>,
    ) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a member of a structure. Any other value stays as it is.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Self>) {
        if let Self::Structure(members) = self {
            members.insert(name.into(), value.into());
        }
    }

    /// A list of these values.
    pub fn list_of<V: Into<Self>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }

    /// The member with this name; `None` if this is no structure, or lacks the member.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Structure(members) => members.get(name),
            Self::Shared(shared) => shared.value.member(name),
            _ => None,
        }
    }

    /// The member at the end of a path of member names, such as `InstanceMarketOptions`, `SpotOptions`, `MaxPrice`; `None` if there
    /// is none.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, name| value.member(name))
    }

    /// All members by name; empty for any other value.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self {
            Self::Structure(members) => Some(members),
            Self::Shared(shared) => match &shared.value {
                Self::Structure(members) => Some(members),
                _ => None,
            },
            _ => None,
        };
        members.into_iter().flat_map(MemberMap::iter)
    }

    /// The text of the member `name`; `None` if there is no such member, or it is not a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.member(name).and_then(Self::as_text)
    }

    /// The integer of the member `name`; `None` if there is no such member, or it is not an integer.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.member(name)? {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The number of the member `name`, whether an integer or a float; `None` if there is no such member, or it is not a number.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.member(name)? {
            Self::Float(value) => Some(*value),
            #[expect(clippy::cast_precision_loss, reason = "counts and bounds, far below 2^53")]
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The boolean of the member `name`; `None` if there is no such member, or it is not a boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.member(name)? {
            Self::Flag(value) => Some(*value),
            _ => None,
        }
    }

    /// The instant of the member `name`, in microseconds since 1970 (UTC); `None` if there is no such member, or it is not an
    /// instant.
    pub fn instant(&self, name: &str) -> Option<i64> {
        match self.member(name)? {
            Self::Instant(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of the member `name`; `None` if there is no such member, or it is not a blob.
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

    /// The text of the value; `None` if it is not a text.
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
            Self::Shared(shared) => shared.value.kind(),
        }
    }
}

impl From<Arc<SharedValue>> for WireValue {
    fn from(value: Arc<SharedValue>) -> Self {
        Self::Shared(value)
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
