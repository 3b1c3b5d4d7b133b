//! Detection of unknown keys in a log line.

use serde_json::Value;

/// Path of the first key in `read` that is missing in `known`, the same line parsed and serialised
/// again.
pub(crate) fn find_unknown_key(read: &Value, known: &Value) -> Option<String> {
    match (read, known) {
        (Value::Object(read), Value::Object(known)) => read.iter().find_map(|(key, inside)| {
            let Some(known) = known.get(key) else { return Some(key.clone()) };
            find_unknown_key(inside, known).map(|path| format!("{key}.{path}"))
        }),
        (Value::Array(read), Value::Array(known)) => {
            read.iter().zip(known).enumerate().find_map(|(n, (read, known))| {
                find_unknown_key(read, known).map(|path| format!("{n}.{path}"))
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
        assert_eq!(find_unknown_key(&known, &known), None);
        // A key that is missing in the line is no unknown key.
        assert_eq!(find_unknown_key(&json!({ "seq": 1 }), &known), None);
        let outside = json!({ "seq": 1, "sneaky": 0 });
        assert_eq!(find_unknown_key(&outside, &known).as_deref(), Some("sneaky"));
        let inside = json!({ "effects": [{}, { "vm": 2, "wyh": "x" }] });
        assert_eq!(find_unknown_key(&inside, &known).as_deref(), Some("effects.1.wyh"));
    }
}
