//! Conversion of call parameters and answers to JSON for the log, and digests of answers.

use std::fmt::Write as _;

use dormouse_ec2_wire::{ApiError, WireValue};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A value of the wire as JSON. A value of a kind that JSON lacks becomes an object with one key: `$instant`, `$bytes`
/// or `$float`.
pub(crate) fn value_to_json(value: &WireValue) -> Value {
    match value {
        WireValue::Structure(members) => {
            let members =
                members.iter().map(|(name, value)| (name.to_owned(), value_to_json(value)));
            Value::Object(members.collect())
        }
        WireValue::List(values) => Value::Array(values.iter().map(value_to_json).collect()),
        WireValue::Text(text) => Value::String(text.clone()),
        WireValue::Integer(number) => json!(number),
        WireValue::Float(number) => json!({ "$float": number }),
        WireValue::Flag(flag) => Value::Bool(*flag),
        WireValue::Instant(micros) => json!({ "$instant": micros }),
        WireValue::Bytes(bytes) => json!({ "$bytes": hex(bytes) }),
        WireValue::Shared(shared) => value_to_json(shared.value()),
    }
}

/// Reads a value that [`value_to_json`] wrote; any other JSON becomes an empty structure.
pub(crate) fn value_from_json(json: &Value) -> WireValue {
    match json {
        Value::Null => WireValue::structure(),
        Value::Bool(flag) => WireValue::Flag(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => WireValue::Integer(number),
            None => WireValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => WireValue::Text(text.clone()),
        Value::Array(values) => WireValue::List(values.iter().map(value_from_json).collect()),
        Value::Object(members) => special(members).unwrap_or_else(|| {
            let members =
                members.iter().map(|(name, value)| (name.clone(), value_from_json(value)));
            WireValue::Structure(members.collect())
        }),
    }
}

fn special(members: &Map<String, Value>) -> Option<WireValue> {
    if members.len() != 1 {
        return None;
    }
    let (name, value) = members.iter().next()?;
    match name.as_str() {
        "$float" => Some(WireValue::Float(value.as_f64()?)),
        "$instant" => Some(WireValue::Instant(value.as_i64()?)),
        "$bytes" => {
            let text = value.as_str()?;
            let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
            (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().map(WireValue::Bytes)
        }
        _ => None,
    }
}

/// SHA-256 of an answer, in hexadecimal.
pub(crate) fn answer_digest(answer: &Result<WireValue, ApiError>) -> String {
    let json = match answer {
        // A private key is not in the log, nor what it could be recognised by.
        Ok(value) => {
            let mut json = value_to_json(value);
            if let Some(members) = json.as_object_mut()
                && members.remove("KeyMaterial").is_some()
            {
                members.remove("KeyFingerprint");
            }
            json
        }
        Err(ApiError { code, message }) => json!({ "$error": [code, message] }),
    };
    hex(&Sha256::digest(json.to_string().as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back() {
        let value = WireValue::structure()
            .with("Text", "a")
            .with("Count", 3_i64)
            .with("Share", 2.0)
            .with("Flag", true)
            .with("At", WireValue::Instant(1_795_766_400_000_000))
            .with("Key", WireValue::Bytes(vec![0, 255, 16]))
            .with("List", vec!["a", "b"]);
        let json = value_to_json(&value).to_string();
        let read = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(value_from_json(&read), value);
    }

    #[test]
    fn other_answers_have_other_digests() {
        let refused = |code: &str| Err(ApiError::new(code, "no"));
        let [one, other] = [refused("A"), refused("B")].map(|answer| answer_digest(&answer));
        assert_ne!(one, other);
        assert_ne!(answer_digest(&Ok(WireValue::structure())), one);
    }
}
