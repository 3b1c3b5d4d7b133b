//! Messages for a command line that can't be parsed: clap's error in the style of all other errors, with a tip on what
//! to type.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::examples::all;
use super::grammar::grammar;
use super::terminal;

/// Prefix of clap's errors, in place of which this program's name is printed.
const CLAP_PREFIX: &str = "error:";

/// Replaces the word `help` by its meaning: `dormouse help run` becomes `dormouse run --help`.
pub(super) fn help_last(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Adds a tip that fits the typed words to an error, and removes misleading tips of clap.
pub(super) fn explained(mut error: Error, words: &[OsString]) -> Error {
    let is_help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::DisplayVersion,
    ];
    if is_help.contains(&error.kind()) {
        return error;
    }
    let words: Vec<String> =
        words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // "To pass '-o' as a value, use '-- -o'": behind -- is a program of the user's own.
    error.remove(ContextKind::Suggested);
    if error.kind() == ErrorKind::InvalidSubcommand {
        only_near(&mut error);
    }
    let of = path(&words);
    let tip = tip(&error, &of, &words);
    if tip.is_some() {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
    }
    let is_shown = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand]
        .iter()
        .all(|kind| error.get(*kind).is_none());
    let example = || {
        let has_values =
            error.kind() == ErrorKind::InvalidValue || error.kind() == ErrorKind::ValueValidation;
        let example = all().find(|(path, _)| *path == of).filter(|_| is_shown && !has_values);
        example.map(|(_, example)| format!("such as: {}", example.line))
    };
    if let Some(tip) = tip.or_else(example) {
        let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// The first line of the error, without clap's prefix.
pub(super) fn summarize(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches(CLAP_PREFIX).trim_start().to_owned()
}

/// Prints the error on standard error, and returns the exit status of a wrong command line.
pub(super) fn report(error: &Error) -> ExitCode {
    let styled = error.render();
    let text =
        if terminal::stderr_has_colour() { styled.ansi().to_string() } else { styled.to_string() };
    // A help that is printed in the place of an error has no prefix.
    let text = if styled.to_string().starts_with(CLAP_PREFIX) {
        text.replacen(CLAP_PREFIX, "dormouse:", 1)
    } else {
        text
    };
    // Where nobody can be told there is nobody to tell that.
    let _ = write!(io::stderr().lock(), "{text}");
    ExitCode::from(2)
}

/// The command that was typed, without its options and values.
fn path(words: &[String]) -> String {
    let (mut command, mut path) = (&grammar(), Vec::new());
    for word in words {
        let Some(sub) = command.find_subcommand(word) else { break };
        path.push(word.as_str());
        command = sub;
    }
    path.join(" ")
}

/// Keeps only those suggestions for a wrong name of a paper that fit the name: for a part of a paper, parts of the same
/// paper; else papers.
fn only_near(error: &mut Error) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let typed = typed.clone();
    let Some(ContextValue::Strings(near)) = error.get(ContextKind::SuggestedSubcommand) else {
        return;
    };
    let paper = typed.split_once('/').map(|(paper, _)| format!("{paper}/"));
    let is_near = |name: &&String| match &paper {
        Some(paper) => name.starts_with(paper),
        None => !name.contains('/'),
    };
    let mut kept: Vec<String> = near.iter().filter(is_near).cloned().collect();
    if kept.is_empty() {
        kept.clone_from(near);
    }
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(kept));
}

/// A tip for words that clap does not know; `None`: no tip fits.
fn tip(error: &Error, of: &str, words: &[String]) -> Option<String> {
    let wrong = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) => wrong.as_str(),
        Some(ContextValue::Strings(wrong)) => wrong.first().map_or("", String::as_str),
        _ => "",
    };
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(wrong, of, words),
        ErrorKind::ArgumentConflict if of == "run" && wrong.contains("--on") => {
            Some("write -- before the program: dormouse run --on j60 -- ./work.sh".to_owned())
        }
        _ => None,
    }
}

fn unknown(wrong: &str, of: &str, words: &[String]) -> Option<String> {
    let after = words.iter().position(|word| word == wrong).and_then(|at| words.get(at + 1));
    let before =
        words.iter().position(|word| word == wrong).and_then(|at| words.get(at.checked_sub(1)?));
    let has_out = !["", "list", "show", "check", "replay", "explain", "watch"].contains(&of);
    let tip = match wrong {
        "-o" | "--output" | "--output-dir" | "--outdir" if has_out => "results go to --out".to_owned(),
        "--seeds" if of == "run" => {
            "a run has one seed, --seed; `dormouse sweep` and `dormouse compare` run many".to_owned()
        }
        "--live" if of == "coordinator" => "its runs are live anyway: leave --live out".to_owned(),
        "--experiment" | "--config" | "--file" if ["run", "sweep", "coordinator"].contains(&of) => {
            let name = after.map_or("j60", String::as_str);
            format!("the experiment has no option: dormouse {of} {name}")
        }
        _ if of.is_empty() && wrong.starts_with('-') => {
            "the command comes first, such as: dormouse run j60 --live".to_owned()
        }
        _ if wrong.starts_with('-') => return None,
        _ if of == "list" => "it lists experiments and schedulers, and takes no name".to_owned(),
        _ if before.is_some_and(|word| word == "--set" || !word.contains('=') && is_set(words, word)) => {
            let key = before.map_or("KEY", String::as_str);
            format!("a key and its value are one word: --set {key}={wrong}")
        }
        _ if wrong.contains('=') => format!("keys are set with --set {wrong}"),
        _ if of == "compare" => {
            "lists have commas and no spaces: --schedulers burst-hads,hads --on j60,j80".to_owned()
        }
        _ if of == "worker" => format!("give the coordinator with --coordinator {wrong}"),
        _ if ["run", "coordinator", "sweep"].contains(&of) => {
            "one experiment at a time; `dormouse compare --on j60,j80` takes several, and a program of your \
             own stands behind --"
                .to_owned()
        }
        _ => return None,
    };
    Some(tip)
}

/// Whether a word is the value of a `--set`.
fn is_set(words: &[String], word: &str) -> bool {
    words.windows(2).any(|pair| pair[0] == "--set" && pair[1] == word)
}
