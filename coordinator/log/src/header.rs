//! The first line of a log, before it is written.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The first line of a log that is yet to be written, a JSON object, as its text: as text, the tasks of a large bag
/// take a tenth of the memory that they take as values.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct HeaderText(Box<RawValue>);

impl HeaderText {
    /// The text of this header.
    ///
    /// # Errors
    ///
    /// The header can't be written as JSON.
    pub fn new(header: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(header).map(Self)
    }

    /// True if the header is a JSON object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }

    /// The header with one more key at its end; the header must not have the key yet.
    ///
    /// # Errors
    ///
    /// The header is not a JSON object.
    pub fn with_key(&self, key: &str, value: &Value) -> serde_json::Result<Self> {
        let text = self.0.get();
        let body = text.strip_suffix('}').unwrap_or(text);
        let comma = if body.ends_with('{') { "" } else { "," };
        let key = Value::from(key);
        RawValue::from_string(format!("{body}{comma}{key}:{value}}}")).map(Self)
    }

    /// The log's header as a JSON value.
    ///
    /// # Errors
    ///
    /// The header's values are nested too deeply.
    pub fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_has_one_more_key_at_its_end() {
        for header in [json!({}), json!({"format": 2, "tasks": [{"name": "}"}]})] {
            let text = HeaderText::new(&header).expect("it is JSON");
            assert!(text.is_object());
            let with = text.with_key("live", &json!({"run": "r"})).expect("it is an object");
            let mut expected = header;
            expected["live"] = json!({"run": "r"});
            assert_eq!(with.to_value().expect("shallow"), expected);
            assert_eq!(serde_json::to_string(&with).expect("JSON"), expected.to_string());
        }
        let list = HeaderText::new(&json!([1])).expect("it is JSON");
        assert!(!list.is_object() && list.with_key("live", &json!(1)).is_err());
    }
}
