//! Keys of a log's line that are unknown to the type it was read as.

use serde_json::Value;

/// Path of the first key of `read` that is not in `known`, which was read from it and written
/// again.
pub(crate) fn unknown(read: &Value, known: &Value) -> Option<String> {
    match (read, known) {
        (Value::Object(read), Value::Object(known)) => read.iter().find_map(|(key, inside)| {
            let Some(known) = known.get(key) else { return Some(key.clone()) };
            unknown(inside, known).map(|path| format!("{key}.{path}"))
        }),
        (Value::Array(read), Value::Array(known)) => {
            read.iter().zip(known).enumerate().find_map(|(n, (read, known))| {
                unknown(read, known).map(|path| format!("{n}.{path}"))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_key_is_found_wherever_it_is() {
        let known =
            json!({ "seq": 1, "effects": [{ "effect": "stale" }, { "vm": 2, "why": "x" }] });
        assert_eq!(unknown(&known, &known), None);
        // A key that is missing in the line is no unknown key.
        assert_eq!(unknown(&json!({ "seq": 1 }), &known), None);
        let outside = json!({ "seq": 1, "sneaky": 0 });
        assert_eq!(unknown(&outside, &known).as_deref(), Some("sneaky"));
        let inside = json!({ "effects": [{}, { "vm": 2, "wyh": "x" }] });
        assert_eq!(unknown(&inside, &known).as_deref(), Some("effects.1.wyh"));
    }
}
