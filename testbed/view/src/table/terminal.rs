//! Terminals and their abilities.

use std::borrow::Cow;

use dormouse_units::printable;

use super::TextTone;

/// Beginning of a terminal's escape sequence, such as one for a colour.
const ORDER: &str = "\x1b[";
/// Longest escape sequence for a text style (SGR, such as a colour) that is printed and not escaped, in bytes.
const LONGEST_LOOK: usize = 12;
/// Number of the text attribute (SGR) of a terminal that hides text.
const CONCEALED: &str = "8";

/// Width of a terminal, and whether it shows colours; found out by the program that owns the
/// terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns, at which lines of a table are broken; `None`: lines are not broken.
    pub width: Option<u16>,
    /// Whether text may be coloured.
    pub has_colour: bool,
}

impl Terminal {
    /// A terminal without colours and without a limit on the width, for files, pipes and tests.
    pub const PLAIN: Self = Self { width: None, has_colour: false };

    /// A text in the colour of good or of bad news.
    #[must_use]
    pub fn verdict(self, is_good: bool, text: &str) -> String {
        self.toned(TextTone::verdict(is_good), text)
    }

    /// An unimportant text, shown faintly.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.toned(TextTone::Dim, text)
    }

    /// The text with all control sequences escaped that this terminal would obey, except looks of text, if text may be
    /// coloured. Quoted text can therefore do no more than colour itself.
    #[must_use]
    pub fn shown(self, text: &str) -> Cow<'_, str> {
        if !self.has_colour || !text.contains(ORDER) {
            return printable(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut pieces = text.split(ORDER);
        shown.push_str(&printable(pieces.next().unwrap_or_default()));
        for piece in pieces {
            let look =
                piece.find('m').filter(|end| *end <= LONGEST_LOOK && is_look(&piece[..*end]));
            match look {
                Some(end) => {
                    let (look, rest) = piece.split_at(end + 1);
                    shown.extend([ORDER, look, &printable(rest)]);
                }
                None => shown.extend([printable(ORDER), printable(piece)]),
            }
        }
        Cow::Owned(shown)
    }

    /// The text, broken between words at the terminal's width; further lines are indented by this many columns. Colours
    /// take no room, and a word that is longer than a line stays whole.
    #[must_use]
    pub fn wrapped(self, text: &str, indent: usize) -> String {
        let Some(width) = self.width.map(usize::from) else { return text.to_owned() };
        let mut wrapped = String::with_capacity(text.len());
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                wrapped.push('\n');
            }
            let mut used = 0;
            for (n, word) in line.split(' ').enumerate() {
                let wide = visible(word);
                if n > 0 && used + 1 + wide > width && used > indent && wide > 0 {
                    wrapped.push('\n');
                    wrapped.extend(std::iter::repeat_n(' ', indent));
                    used = indent;
                } else if n > 0 {
                    wrapped.push(' ');
                    used += 1;
                }
                wrapped.push_str(word);
                used += wide;
            }
        }
        wrapped
    }

    /// A text in this tone.
    #[must_use]
    pub fn toned(self, tone: TextTone, text: &str) -> String {
        let code = match tone {
            TextTone::Good => "1;32",
            TextTone::Bad => "1;31",
            TextTone::Dim => "2",
            TextTone::Plain => return text.to_owned(),
        };
        match self.has_colour && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Number of visible characters of a word: those outside of escape sequences for text styles.
fn visible(word: &str) -> usize {
    let mut pieces = word.split(ORDER);
    let first = pieces.next().map_or(0, |piece| piece.chars().count());
    let after = |piece: &str| piece.split_once('m').map_or(0, |(_, rest)| rest.chars().count());
    first + pieces.map(after).sum::<usize>()
}

/// True if the numbers of an SGR escape sequence, which sets a terminal's text style, leave text visible.
fn is_look(numbers: &str) -> bool {
    numbers.bytes().all(|b| b.is_ascii_digit() || b == b';')
        && numbers.split(';').all(|number| number != CONCEALED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_colours_take_no_room() {
        let narrow = Terminal { width: Some(20), has_colour: true };
        let said = format!("  cost   {} for 11 VMs", narrow.verdict(true, "$0.1307"));
        let broken = "  cost   \x1b[1;32m$0.1307\x1b[0m for\n         11 VMs";
        assert_eq!(narrow.wrapped(&said, 9), broken);
        assert_eq!(Terminal::PLAIN.wrapped(&said, 9), said);
        let long = "a/very/long/path/that/has/no/blank";
        assert_eq!(narrow.wrapped(long, 2), long);
    }

    #[test]
    fn a_text_has_colours_and_nothing_else_that_a_terminal_obeys() {
        let colour = Terminal { width: None, has_colour: true };
        let own = [colour.verdict(true, "yes"), colour.dim("and"), "plain\n".to_owned()].concat();
        assert_eq!(colour.shown(&own), own);
        for (bad, shown) in [
            ("\x1b[2Jgone", "\\u001b[2Jgone"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[8mhidden\x1b[0m", "\\u001b[8mhidden\x1b[0m"),
            ("\x1b[1;31mred\x1b[1A", "\x1b[1;31mred\\u001b[1A"),
            ("\x1b[\x1b[2Kx", "\\u001b[\\u001b[2Kx"),
            ("\x1b[", "\\u001b["),
        ] {
            assert_eq!(colour.shown(bad), shown, "{bad:?}");
        }
        assert_eq!(Terminal::PLAIN.shown(&own), printable(&own));
        assert!(!Terminal::PLAIN.shown(&own).contains('\x1b'));
    }
}
