//! The flat parameters of a query request, and the tree that their names make.

use std::collections::BTreeMap;

use crate::ApiError;

/// Greatest number of parts between dots in a parameter's name. The model's deepest name has 14.
const MAX_DEPTH: usize = 20;
/// Most parameters of a request.
const MAX_PAIRS: usize = 20_000;
/// Names of the parameters that every request may have: those for the action and the caller, and those of a signature
/// in the query.
const COMMON: &[&str] = &[
    "Action",
    "Version",
    "AWSAccessKeyId",
    "Signature",
    "SignatureMethod",
    "SignatureVersion",
    "Timestamp",
    "Expires",
    "SecurityToken",
];

/// Parameters of a request in the order they were sent: names and values, decoded.
pub type QueryPairs = Vec<(String, String)>;

/// Reads a form body or the query of a URL (`application/x-www-form-urlencoded`).
///
/// Bytes that are not UTF-8, a broken escape, a character that XML can't carry back, and more than 20,000 parameters
/// are refused.
pub fn read_query(body: &str) -> Result<QueryPairs, ApiError> {
    let mut pairs = Vec::new();
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == MAX_PAIRS {
            let text = format!("The request has more than {MAX_PAIRS} parameters.");
            return Err(ApiError::new("MalformedQueryString", text));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decode(name)?, decode(value)?));
    }
    Ok(pairs)
}

/// Decodes `+` and escapes like `%41` of a form.
fn decode(text: &str) -> Result<String, ApiError> {
    let malformed = |what: &str| ApiError::new("MalformedQueryString", what);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => hex_digit(rest.next())
                .zip(hex_digit(rest.next()))
                .map(|(high, low)| high * 16 + low)
                .ok_or_else(|| malformed("The query string has a % without two hex digits."))?,
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| malformed("The query string is not UTF-8."))?;
    if text.chars().all(is_xml_char) {
        Ok(text)
    } else {
        Err(malformed("The query string has a control character."))
    }
}

fn hex_digit(byte: Option<u8>) -> Option<u8> {
    let digit = char::from(byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Whether XML 1.0 can carry a character.
pub(crate) fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a parameter may be in every request, and so belongs to no action's input.
pub(crate) fn is_common(name: &str) -> bool {
    COMMON.contains(&name) || name.starts_with("X-Amz-") || name.starts_with("x-amz-")
}

/// Parameters by the parts of their names: `Filter.1.Name` is `Filter`, `1`, `Name`.
#[derive(Debug, Default)]
pub(crate) struct ParameterTree {
    /// Value of the parameter whose name ends at this part.
    pub(crate) value: Option<String>,
    /// Parameters below this part, by the first part of the rest of their names.
    pub(crate) parts: BTreeMap<String, Self>,
}

impl ParameterTree {
    /// Builds the tree of all parameters except the common ones that every request may have.
    pub(crate) fn of_pairs(pairs: &[(String, String)]) -> Result<Self, ApiError> {
        let mut root = Self::default();
        for (name, value) in pairs.iter().filter(|(name, _)| !is_common(name)) {
            root.insert(name, value)?;
        }
        Ok(root)
    }

    fn insert(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name.split('.').count() > MAX_DEPTH {
            return Err(unknown_parameter(name));
        }
        let mut at = self;
        for part in name.split('.') {
            at = at.parts.entry(part.to_owned()).or_default();
        }
        if at.value.replace(value.to_owned()).is_some() {
            let text = format!("The parameter {name} is given twice.");
            return Err(ApiError::new("MalformedQueryString", text));
        }
        Ok(())
    }

    /// The whole name of some parameter at or below this part, whose own name is `prefix`.
    pub(crate) fn some_name(&self, prefix: &str) -> String {
        let mut name = prefix.to_owned();
        let mut at = self;
        while at.value.is_none() {
            let Some((part, below)) = at.parts.first_key_value() else { break };
            name = join(&name, part);
            at = below;
        }
        name
    }
}

/// The whole name of the part `part` below the name `prefix`.
pub(crate) fn join(prefix: &str, part: &str) -> String {
    if prefix.is_empty() { part.to_owned() } else { format!("{prefix}.{part}") }
}

/// EC2's error for a parameter that the action does not have.
pub(crate) fn unknown_parameter(name: &str) -> ApiError {
    ApiError::new("UnknownParameter", format!("The parameter {name} is not recognized"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_are_decoded_and_broken_ones_refused() {
        let pairs = read_query("A=x+y&B=%C3%BC%26&C&&D=").expect("they are right");
        let wanted = [("A", "x y"), ("B", "ü&"), ("C", ""), ("D", "")];
        assert_eq!(pairs, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for broken in ["A=%", "A=%4", "A=%zz", "A=%ff", "A=%00", "A=%01", "%+1=2"] {
            let error = read_query(broken).expect_err(broken);
            assert_eq!(error.code, "MalformedQueryString", "{broken}");
        }
    }

    #[test]
    fn a_name_of_a_thousand_parts_is_refused_before_it_is_a_tree() {
        let name = vec!["a"; 1_000].join(".");
        let error = ParameterTree::of_pairs(&[(name, String::new())]).expect_err("it is deep");
        assert_eq!(error.code, "UnknownParameter");
    }

    #[test]
    fn a_parameter_that_is_given_twice_is_refused() {
        let pairs = read_query("A.1=x&A.1=y").expect("a form");
        let error = ParameterTree::of_pairs(&pairs).expect_err("twice");
        assert_eq!(error.message, "The parameter A.1 is given twice.");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in ".{0,80}") {
            if let Ok(pairs) = read_query(&text) {
                let _ = ParameterTree::of_pairs(&pairs);
            }
        }
    }
}
