//! A command that is worth typing after another one, and the conditions under which such commands are printed.

use std::io::IsTerminal as _;

use dormouse_experiment::command_line;

use crate::cli::args::Say;
use crate::cli::terminal;
use crate::said;

/// Environment variable that turns next steps off.
const SWITCH: &str = "DORMOUSE_HINTS";

/// A command, as a shell reads it, and its purpose.
#[derive(Clone, Debug)]
pub(in crate::cli) struct NextStep {
    pub(in crate::cli) line: String,
    pub(in crate::cli) why: &'static str,
}

impl NextStep {
    pub(in crate::cli) fn new(line: impl Into<String>, why: &'static str) -> Self {
        Self { line: line.into(), why }
    }
}

/// Joins words so that a shell reads them back, with quotation marks only where needed.
pub(in crate::cli) fn pasted<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:@%+".contains(c);
    let quoted = words.into_iter().map(|word| match word.as_ref() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => plain.to_owned(),
        other => command_line([other]),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The next steps one below the other, each with a comment, so that a whole line can be pasted. Where the lines are wider
/// than a terminal of this width, each comment stands above its command.
pub(in crate::cli) fn aligned(indent: &str, steps: &[NextStep], terminal: Option<u16>) -> String {
    let width = steps.iter().map(|step| step.line.chars().count()).max().unwrap_or_default();
    let comment = steps.iter().map(|step| step.why.chars().count()).max().unwrap_or_default();
    let has_room = |columns: u16| indent.len() + width + 4 + comment <= usize::from(columns);
    let lines = steps.iter().map(|NextStep { line, why }| match terminal.is_none_or(has_room) {
        true => format!("{indent}{line:<width$}  # {why}"),
        false => format!("{indent}# {why}\n{indent}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints at most three next steps, if the user sits at a terminal.
pub(in crate::cli) fn say(say: Say, steps: impl FnOnce() -> Vec<NextStep>) {
    let is_off = std::env::var_os(SWITCH).is_some_and(|value| value == "0");
    let is_seen = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
    if say.quiet || say.json || is_off || !is_seen {
        return;
    }
    let mut steps = steps();
    steps.truncate(3);
    if !steps.is_empty() {
        let width = terminal::stderr_width();
        said::line(&format!("\n  next\n{}", aligned("    ", &steps, width)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let words = ["dormouse", "run", "a,b=c/d.toml", "a b", "*", ""];
        assert_eq!(pasted(words), "dormouse run a,b=c/d.toml 'a b' '*' ''");
    }

    #[test]
    fn a_line_can_be_pasted_whole() {
        let steps =
            [NextStep::new("dormouse list", "all"), NextStep::new("dormouse check r", "it")];
        assert_eq!(aligned("", &steps, None), "dormouse list     # all\ndormouse check r  # it");
        let narrow = "# all\ndormouse list\n# it\ndormouse check r";
        assert_eq!(aligned("", &steps, Some(20)), narrow);
        assert_eq!(aligned("", &steps, Some(23)), aligned("", &steps, None));
    }
}
