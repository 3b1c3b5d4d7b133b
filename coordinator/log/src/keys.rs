//! Keys of a line that what was read from it does not have.

use serde_json::Value;

/// The first key of `read` that `known`, which is written of the same, has not; by its path.
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
        // What is not said is known by default.
        assert_eq!(unknown(&json!({ "seq": 1 }), &known), None);
        let outside = json!({ "seq": 1, "sneaky": 0 });
        assert_eq!(unknown(&outside, &known).as_deref(), Some("sneaky"));
        let inside = json!({ "effects": [{}, { "vm": 2, "wyh": "x" }] });
        assert_eq!(unknown(&inside, &known).as_deref(), Some("effects.1.wyh"));
    }
}
