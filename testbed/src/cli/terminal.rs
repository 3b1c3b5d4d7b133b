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

/// Whether standard error is a terminal that shows colours.
pub(super) fn stderr_has_colour() -> bool {
    std::io::stderr().is_terminal() && wants_colour()
}

fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !is_set("NO_COLOR") && !is_dumb
}
