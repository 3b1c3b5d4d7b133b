//! The terminals that this process writes to, if any.

use std::io::IsTerminal as _;

use dormouse_view::Terminal;

/// Abilities of standard output: the terminal's width, and colours unless `NO_COLOR` is set or the terminal is dumb.
pub(super) fn stdout() -> Terminal {
    if !std::io::stdout().is_terminal() {
        return Terminal::PLAIN;
    }
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns);
    Terminal { width, has_colour: wants_colour() }
}

/// Width of the terminal that standard error is, in columns; `None` elsewhere.
pub(super) fn stderr_width() -> Option<u16> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    console::Term::stderr().size_checked().map(|(_, columns)| columns)
}

/// The lines of a text, broken between words at this terminal's width; each goes on below its own text, or below the
/// second column of a list.
pub(super) fn wrapped_lines(to: Terminal, text: &str) -> String {
    let wrap = |line: &str| {
        let bare = without_looks(line);
        let plain = bare.trim_start();
        let begin = bare.len() - plain.len();
        let is_listed = plain.starts_with(['-', '<', '[']);
        let gap = plain.find("  ").filter(|_| is_listed);
        let second = gap.map_or(0, |at| plain.len() - plain[at..].trim_start().len());
        to.wrapped(line, begin + second)
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// A text without the sequences that change its look.
fn without_looks(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |bare, piece| bare + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}

/// Whether standard error is a terminal that shows colours.
pub(super) fn stderr_has_colour() -> bool {
    std::io::stderr().is_terminal() && wants_colour()
}

fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_set("NO_COLOR") && !is_dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_on_below_its_own_text() {
        let to = Terminal { width: Some(24), has_colour: true };
        let text = "  \x1b[1m-q\x1b[0m, --quiet  Print nothing but errors\n      \x1b[4mone\x1b[0m two three four\nabc def ghi jkl mno pqr st";
        let shown = without_looks(&wrapped_lines(to, text));
        let lines = [
            "  -q, --quiet  Print",
            "               nothing",
            "               but",
            "               errors",
            "      one two three four",
            "abc def ghi jkl mno pqr",
            "st",
        ];
        assert_eq!(shown, lines.join("\n"));
        assert_eq!(wrapped_lines(Terminal::PLAIN, text), text);
    }
}
