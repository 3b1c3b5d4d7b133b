//! All examples, and the help of commands that shows them.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

use super::example::Example;
use super::{files, hosts, many_runs, runs};

/// Every example with the path of its command, in an order in which they can be run in one folder.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Example)> {
    let tables = [runs::ALL, many_runs::ALL, files::ALL, hosts::ALL];
    tables
        .into_iter()
        .flatten()
        .flat_map(|(path, examples)| examples.iter().map(move |example| (*path, example)))
}

/// Adds the examples of a command, and of all its subcommands, to the end of their help.
pub(in crate::cli) fn with_examples(command: Command) -> Command {
    below("", command)
}

fn below(path: &str, command: Command) -> Command {
    let own = all().filter(|(of, _)| *of == path).map(|(_, example)| {
        let needs = example.needs.map(|needs| format!("; needs {needs}")).unwrap_or_default();
        (example.line.to_owned(), format!("{}{needs}", example.about))
    });
    let mut own: Vec<_> = own.collect();
    if own.is_empty() && path.contains('/') {
        own = of_a_part(path);
    }
    let command = if own.is_empty() { command } else { command.after_help(text(&own)) };
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        below(path.trim_start(), sub)
    })
}

/// Examples for the command of one part of a paper, derived from the examples of the whole paper, which has the same
/// options.
fn of_a_part(path: &str) -> Vec<(String, String)> {
    let fewer = if path.contains("measy/") { "--jobs 500" } else { "--seeds 3" };
    vec![
        (format!("dormouse {path} {fewer}"), "a quick look at this part alone".to_owned()),
        (format!("dormouse {path} --json"), "the whole part, for another program".to_owned()),
    ]
}

fn text(examples: &[(String, String)]) -> StyledStr {
    let header = clap::builder::styling::Styles::styled().get_header().to_owned();
    let literal = clap::builder::styling::Styles::styled().get_literal().to_owned();
    let mut text = StyledStr::new();
    // Writing into a text can't fail.
    let _ = write!(text, "{header}Examples:{header:#}");
    for (line, about) in examples {
        let _ = write!(text, "\n  {literal}{line}{literal:#}\n      {about}");
    }
    text
}
