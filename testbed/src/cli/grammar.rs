//! The grammar of the command line: all arguments, with examples in the help of every command; and the manual made of
//! it.

use std::path::Path;

use clap::{Command, CommandFactory as _};

use super::command::Cli;
use super::examples::with_examples;
use super::failure::Failure;
use super::help_groups::with_groups;
use super::print::print;

/// The command and all its subcommands, for parsing, completion and the manual.
pub(super) fn grammar() -> Command {
    with_groups(with_examples(Cli::command()))
}

pub(crate) fn write_manual(folder: &Path) -> Result<(), Failure> {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(grammar(), folder));
    let why = |error| {
        format!("{}: the manual can't be written: {error}; give another folder", folder.display())
    };
    written.map_err(|error| Failure::BadInput(why(error)))?;
    print(&format!("the pages are in {}; man -l shows one", folder.display()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::cli::examples::all;

    /// Every command with its path, the program itself first.
    fn commands() -> Vec<(String, Command)> {
        let mut found = vec![(String::new(), grammar())];
        let mut next = 0;
        while let Some((path, command)) = found.get(next).cloned() {
            let below = command.get_subcommands().map(|sub| {
                let path = format!("{path} {}", sub.get_name());
                (path.trim_start().to_owned(), sub.clone())
            });
            found.extend(below.collect::<Vec<_>>());
            next += 1;
        }
        found
    }

    #[test]
    fn every_help_has_two_examples_or_more() {
        let all = commands();
        assert!(all.len() > 50, "{} commands are not all", all.len());
        for (path, mut command) in all {
            for help in [command.render_help(), command.render_long_help()] {
                let help = help.to_string();
                let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
                let lines = examples.lines().filter(|line| line.starts_with("  dormouse "));
                assert!(lines.count() >= 2, "dormouse {path}: too few examples in its help");
            }
        }
    }

    #[test]
    fn every_example_is_of_a_command_that_is_there_and_is_read_as_one() {
        let paths: Vec<_> = commands().into_iter().map(|(path, _)| path).collect();
        for (path, example) in all() {
            assert!(paths.iter().any(|it| it == path), "there is no command '{path}'");
            let words = shlex::split(example.line).unwrap();
            let ours: Vec<_> =
                words.iter().take_while(|w| ![">", "|", "&&"].contains(&w.as_str())).collect();
            let read = grammar().try_get_matches_from(&ours);
            assert!(read.is_ok(), "{}: {}", example.line, read.unwrap_err());
            assert!(
                format!("{} ", example.line).contains(path.split('/').next().unwrap()),
                "{path}: {}",
                example.line
            );
        }
    }

    /// A long list of options is divided into groups, because nobody reads a dozen options to the end.
    #[test]
    fn many_options_are_in_groups() {
        for (path, command) in commands() {
            let shown: Vec<_> = command.get_opts().filter(|arg| !arg.is_hide_set()).collect();
            let alone = shown.iter().filter(|arg| arg.get_help_heading().is_none()).count();
            assert!(
                shown.len() <= 10 || alone <= 8,
                "dormouse {path}: {alone} of {} options are in no group",
                shown.len()
            );
        }
    }
}
