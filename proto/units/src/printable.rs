//! Text from other programs and people, made safe to show on a terminal, in HTML and in SVG.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns the text with all characters escaped as in JSON, such as `\u001b`, that could control a terminal, that XML
/// can't hold, or that change the reading order of a line. Line ends and tabs stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars()
        .for_each(|c| if acts_on_terminal(c) { escape_char(c, &mut shown) } else { shown.push(c) });
    Cow::Owned(shown)
}

/// A printable text as one line of at most `most_bytes` bytes, for a log: line ends and tabs are escaped, too, and a
/// longer text is cut off at its end, with an ellipsis in place of the rest.
#[must_use]
pub fn one_line(text: &str, most_bytes: usize) -> Cow<'_, str> {
    const MORE: &str = "...";
    let acts = |c: char| acts_on_terminal(c) || c.is_control();
    if text.len() <= most_bytes && !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut line = String::new();
    let mut good = 0;
    for c in text.chars() {
        if acts(c) {
            escape_char(c, &mut line);
        } else {
            line.push(c);
        }
        if line.len() > most_bytes {
            line.truncate(good);
            line.push_str(MORE);
            break;
        }
        if line.len() + MORE.len() <= most_bytes {
            good = line.len();
        }
    }
    Cow::Owned(line)
}

/// Whether a character does more than show itself: it controls a terminal, changes the direction of text, or is
/// invisible.
const fn acts_on_terminal(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{d}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, embeddings, overrides and isolates of the direction in which one reads.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Separators that some take for line ends, and what is no character.
        | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}'
        // Tags, which nobody sees.
        | '\u{e0000}'..='\u{e007f}')
}

fn escape_char(c: char, to: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // A string has room.
        let _ = write!(to, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_escaped_and_all_else_stays() {
        for plain in ["", "Zürich, 日本語 🐭", "two\nlines\tand a tab"] {
            assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(printable("a\u{1b}[31mb\r\n\0"), "a\\u001b[31mb\\u000d\n\\u0000");
        assert_eq!(printable("\u{9b}2J \u{202e}cod \u{fffe}"), "\\u009b2J \\u202ecod \\ufffe");
        assert_eq!(printable("\u{e0041}"), "\\udb40\\udc41");
        let json = format!("\"{}\"", printable("\u{7f}\u{e0041}"));
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), "\u{7f}\u{e0041}");
    }

    #[test]
    fn a_line_is_no_longer_than_it_may_be_and_ends_between_characters() {
        assert_eq!(one_line("short", 5), "short");
        assert_eq!(one_line("a\nb\tc", 99), "a\\u000ab\\u0009c");
        assert_eq!(one_line("longer", 5), "lo...");
        // Neither a character nor an escape is cut.
        for most in 3..40 {
            let line = one_line("éé\u{1b}éé\u{1b}éé\u{1b}éé", most);
            assert!(line.len() <= most, "{most}: {line}");
            assert!(!line.contains('\u{1b}'));
            let whole = line.trim_end_matches("...").replace("\\u001b", "").replace('é', "");
            assert_eq!(whole, "", "{most}: {line}");
        }
    }
}
