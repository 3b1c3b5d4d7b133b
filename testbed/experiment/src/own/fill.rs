//! Placeholders in braces.

use std::collections::BTreeMap;

/// Names that always are placeholders in braces.
const KNOWN: [&str; 5] = ["input", "stem", "name", "n", "output"];

/// Value of each placeholder.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceholderValues(BTreeMap<String, String>);

impl PlaceholderValues {
    /// Sets the value of a placeholder.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Replaces placeholders by their values. Other braces stay, and doubled ones become single.
    ///
    /// # Errors
    ///
    /// A placeholder without a value here.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(['{', '}']) {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                filled.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let name = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            match name.map(|(name, after)| (name, self.value_of(name), after)) {
                Some((_, Some(value), after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                Some((name, None, _)) if KNOWN.contains(&name) => return Err(name.to_owned()),
                _ => {
                    filled.push_str(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Value of a placeholder; empty braces mean the input.
    fn value_of(&self, name: &str) -> Option<&str> {
        let name = if name.is_empty() { "input" } else { name };
        self.0.get(name).map(String::as_str)
    }
}

/// Whether a text contains this placeholder.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.contains(&format!("{{{name}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_braces_is_replaced_and_other_braces_stay() {
        let mut values = PlaceholderValues::default();
        values.set("input", "data/a.csv");
        values.set("n", "7");
        for (text, becomes) in [
            ("--in={input}", "--in=data/a.csv"),
            ("{}", "data/a.csv"),
            ("{n}{n}", "77"),
            ("{{input}} }}", "{input} }"),
            ("awk {print $1}", "awk {print $1}"),
            ("{\"a\": {input}}", "{\"a\": data/a.csv}"),
            ("ä{", "ä{"),
            ("", ""),
        ] {
            assert_eq!(values.fill(text), Ok(becomes.to_owned()), "{text}");
        }
        assert_eq!(values.fill("{output}"), Err("output".to_owned()));
        assert_eq!(PlaceholderValues::default().fill("{}"), Ok("{}".to_owned()));
        assert!(mentions("x{n}", "n") && !mentions("n", "n"));
    }
}
