//! YAML as user data hold it: texts, lists and keys with values, without aliases, and not too deep.

use yaml_rust2::Event;
use yaml_rust2::parser::Parser;
use yaml_rust2::scanner::TScalarStyle;

/// Deepest nesting that is read.
const DEPTH: usize = 8;
/// Texts without quotes that mean nothing.
const NOTHING: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// A value of a YAML document. Numbers and flags are texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigValue {
    Null,
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl ConfigValue {
    /// The items of a list; none for nothing. `None`: it is not a list.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        match self {
            Self::Null => Some(&[]),
            Self::List(items) => Some(items),
            Self::Text(_) | Self::Map(_) => None,
        }
    }

    /// The text of a value; `None`: it is not a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The flag that a value is; `None`: it is not a flag.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.text()? {
            "true" | "True" | "TRUE" | "yes" | "on" => Some(true),
            "false" | "False" | "FALSE" | "no" | "off" => Some(false),
            _ => None,
        }
    }
}

/// Reads the first document of a text.
///
/// # Errors
///
/// In words, why it can't be read.
pub(crate) fn read_config(text: &str) -> Result<ConfigValue, String> {
    let mut parser = Parser::new_from_str(text);
    loop {
        match next_event(&mut parser)? {
            Event::StreamEnd => return Ok(ConfigValue::Null),
            Event::StreamStart | Event::DocumentStart | Event::Nothing => {}
            event => return read_value(&mut parser, event, 0),
        }
    }
}

fn next_event(parser: &mut Parser<std::str::Chars<'_>>) -> Result<Event, String> {
    parser.next_token().map(|(event, _)| event).map_err(|error| format!("it is not YAML: {error}"))
}

/// Reads the value that begins with an event.
fn read_value(
    parser: &mut Parser<std::str::Chars<'_>>,
    event: Event,
    depth: usize,
) -> Result<ConfigValue, String> {
    if depth > DEPTH {
        return Err(format!("its lists are nested more than {DEPTH} deep"));
    }
    match event {
        Event::Scalar(text, TScalarStyle::Plain, ..) if NOTHING.contains(&text.as_str()) => {
            Ok(ConfigValue::Null)
        }
        Event::Scalar(text, ..) => Ok(ConfigValue::Text(text)),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next_event(parser)? {
                    Event::SequenceEnd => return Ok(ConfigValue::List(items)),
                    event => items.push(read_value(parser, event, depth + 1)?),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut members: Vec<(String, ConfigValue)> = Vec::new();
            loop {
                let key = match next_event(parser)? {
                    Event::MappingEnd => return Ok(ConfigValue::Map(members)),
                    Event::Scalar(key, ..) => key,
                    _ => return Err("one of its keys is not a word".to_owned()),
                };
                if members.iter().any(|(own, _)| *own == key) {
                    return Err(format!("the key '{key}' is there twice"));
                }
                let event = next_event(parser)?;
                members.push((key, read_value(parser, event, depth + 1)?));
            }
        }
        Event::Alias(_) => Err("it has an alias: write the value out".to_owned()),
        _ => Err("it ends within a value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lists_and_keys_are_read() {
        let value = read_config("a: [1, 'x', null]\nb: {c: \"~\"}\n").expect("it is right");
        let text = |text: &str| ConfigValue::Text(text.to_owned());
        let a = ConfigValue::List(vec![text("1"), text("x"), ConfigValue::Null]);
        let b = ConfigValue::Map(vec![("c".to_owned(), text("~"))]);
        assert_eq!(value, ConfigValue::Map(vec![("a".to_owned(), a), ("b".to_owned(), b)]));
        assert_eq!(read_config(""), Ok(ConfigValue::Null));
        assert_eq!(text("yes").flag(), Some(true));
        assert_eq!(text("maybe").flag(), None);
    }

    proptest::proptest! {
        /// Marks of YAML in any order, with the lines and spaces by which it nests.
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}:,&*!|>'\"%@`#? a1~\n\t-]{0,80}") {
            let _ = read_config(&text);
        }

        #[test]
        fn any_lines_are_read_or_refused(
            lines in proptest::collection::vec("( {0,4})(- |a: |\\? |: |&a |\\*a|!t |\\| ?|> ?|--- ?|\\.\\.\\.|%TAG ! x|'a|\"a\"|\\{|\\[|\\]|\\}|#){0,4}", 0..12)
        ) {
            let _ = read_config(&lines.join("\n"));
        }
    }

    #[test]
    fn what_would_grow_or_nest_without_end_is_refused() {
        let deep = "[".repeat(16_000);
        assert!(read_config(&deep).is_err());
        assert!(read_config(&format!("a: {}1{}", "[".repeat(12), "]".repeat(12))).is_err());
        let bomb = "a: &a [x, x]\nb: [*a, *a]\n";
        assert!(read_config(bomb).is_err_and(|why| why.contains("alias")));
        for text in ["a: b: c", "a: \"", "%", "? [a]\n: b", "- a\nb: c"] {
            assert!(read_config(text).is_err(), "{text}");
        }
    }
}
