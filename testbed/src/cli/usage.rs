//! Messages for a command line that can't be parsed: clap's error in the style of all other errors, with a tip on what
//! to type.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use dormouse_view::Terminal;
use strsim::damerau_levenshtein;

use super::examples::all;
use super::grammar::grammar;
use super::terminal;

/// Prefix of clap's errors, in place of which this program's name is printed.
const CLAP_PREFIX: &str = "error:";

/// Greatest number of names that an error proposes.
const MOST_NAMES: usize = 3;

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
    let of = path(&words);
    if error.kind() == ErrorKind::InvalidSubcommand {
        suggest_nearest(&mut error, names_below(&of).into_iter());
    }
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

/// The error as all others are: what is wrong, what to type, and where to read more, in one line.
fn one_line(error: &Error, words: &[String]) -> String {
    let of = path(words);
    let invalid = |kind| match error.get(kind) {
        Some(ContextValue::String(wrong)) => wrong.as_str(),
        _ => "",
    };
    let whole = error.to_string();
    let mut parts =
        whole.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = parts.next().unwrap_or_default();
    let message = message.trim_start_matches(CLAP_PREFIX).trim_start();
    let command = if of.is_empty() { "dormouse".to_owned() } else { format!("dormouse {of}") };
    let place = if of.is_empty() { String::new() } else { format!("{of}: ") };
    let wrong = invalid(ContextKind::InvalidArg);
    let message = match error.kind() {
        ErrorKind::UnknownArgument if wrong.starts_with('-') => {
            format!("there is no option {wrong}")
        }
        ErrorKind::UnknownArgument => format!("'{wrong}' is one word too many"),
        ErrorKind::InvalidSubcommand => {
            format!("there is no command '{}'", invalid(ContextKind::InvalidSubcommand))
        }
        ErrorKind::MissingRequiredArgument => {
            message.replace("the following required arguments were not provided:", "it needs")
        }
        _ => message.to_owned(),
    };
    let message = format!("{place}{message}");
    let near = |kind| match error.get(kind) {
        Some(ContextValue::String(near)) => Some(near.clone()),
        Some(ContextValue::Strings(near)) if !near.is_empty() => {
            Some(near.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join("', '"))
        }
        _ => None,
    };
    let near = near(ContextKind::SuggestedArg).or_else(|| near(ContextKind::SuggestedSubcommand));
    let tip = match near {
        Some(near) => Some(format!("did you mean '{near}'?")),
        None => parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned)),
    };
    let more = format!("`{command} --help` tells more");
    [Some(message), tip, Some(more)].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Prints a help or a version on standard output, broken between words at the terminal's width.
pub(super) fn print_help(error: &Error) -> ExitCode {
    let (to, styled) = (terminal::stdout(), error.render());
    let text = if to.has_colour { styled.ansi().to_string() } else { styled.to_string() };
    // Where nobody reads there is nobody to print for.
    let _ = writeln!(io::stdout().lock(), "{}", terminal::wrapped_lines(to, &text));
    ExitCode::SUCCESS
}

/// Prints the error on standard error, and returns the exit status of a wrong command line.
pub(super) fn report(error: &Error, words: &[OsString]) -> ExitCode {
    let styled = error.render();
    // A help that is printed in the place of an error has no prefix.
    let text = if styled.to_string().starts_with(CLAP_PREFIX) {
        let words: Vec<_> =
            words.iter().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
        format!("dormouse: {}", one_line(error, &words))
    } else if terminal::stderr_has_colour() {
        styled.ansi().to_string()
    } else {
        styled.to_string()
    };
    let to = Terminal { width: terminal::stderr_width(), has_colour: false };
    // Where nobody can be told there is nobody to tell that.
    let _ = writeln!(io::stderr().lock(), "{}", terminal::wrapped_lines(to, &text));
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

/// Names of the subcommands of the command with this path.
fn names_below(path: &str) -> Vec<String> {
    let mut command = &grammar();
    for word in path.split_whitespace() {
        let Some(sub) = command.find_subcommand(word) else { break };
        command = sub;
    }
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.map(|sub| sub.get_name().to_owned()).collect()
}

/// Suggests names for a wrong name of a command, the nearest first: those that clap suggests, and those of `names` that differ in
/// few letters. Of clap's suggestions for a part of a paper, only parts of the same paper stay if there are any; for other names,
/// only names without a slash.
fn suggest_nearest(error: &mut Error, names: impl Iterator<Item = String>) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let typed = typed.clone();
    let near = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(near)) => near.clone(),
        _ => Vec::new(),
    };
    let paper = typed.split_once('/').map(|(paper, _)| format!("{paper}/"));
    let is_near = |name: &&String| match &paper {
        Some(paper) => name.starts_with(paper),
        None => !name.contains('/'),
    };
    let mut kept: Vec<String> = near.iter().filter(is_near).cloned().collect();
    if kept.is_empty() {
        kept.clone_from(&near);
    }
    // A slip of one letter is near in a short word, too.
    let slips = names.filter(|name| damerau_levenshtein(&typed, name) <= (typed.len() / 3).max(1));
    kept.extend(slips.filter(|name| !near.contains(name)).collect::<Vec<_>>());
    if kept.is_empty() {
        return;
    }
    // The nearest comes first.
    kept.sort_by_key(|name| damerau_levenshtein(&typed, name));
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
