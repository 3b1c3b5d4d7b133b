//! Tab completion: the shell asks the program at each Tab, because names of files and runs are known only then.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use dormouse_experiment::BuiltinExperiment;

use super::experiment_keys::keys;
use super::failure::Failure;
use super::grammar::grammar;
use super::known_name;
use super::print::print;
use super::run_folders::{found, is_a_run};

/// Environment variable that a shell sets to its name when it asks for the completions of a line.
const VARIABLE: &str = "DORMOUSE_COMPLETE";

/// End of the script for zsh: a function that zsh loads at its first call is the whole file, so the file has to answer
/// that call, too.
const ZSH_LOADED: &str = "\n\nif [ \"$funcstack[1]\" = \"_dormouse\" ]; then\n    \
    _clap_dynamic_completer_dormouse \"$@\"\nfi";

/// Answers a shell that asks for the completions of a line, and ends the process; returns if no shell asks.
pub(super) fn answer() {
    CompleteEnv::with_factory(completed).var(VARIABLE).complete();
}

/// Prints the script by which a shell asks this program at each Tab.
pub(super) fn script(shell: Shell) -> Result<(), Failure> {
    let name = shell.to_string();
    let (shells, mut text) = (Shells::builtins(), Vec::new());
    let registered = shells.completer(&name).map(|shell| {
        shell.write_registration(VARIABLE, "dormouse", "dormouse", "dormouse", &mut text)
    });
    match registered {
        Some(Ok(())) => {
            let text = String::from_utf8_lossy(&text);
            let end = if shell == Shell::Zsh { ZSH_LOADED } else { "" };
            print(&format!("{}{end}", text.trim()))
        }
        _ => Err(Failure::Broken(format!("{name}: no completion can be made for this shell"))),
    }
}

/// The grammar of the command line, with completers for its values.
fn completed() -> Command {
    with_completers(grammar())
}

fn with_completers(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|arg| with_completer(&name, arg)).mut_subcommands(|sub| {
        // Parts of papers are left out of the help for their number.
        let is_a_part = sub.get_name().contains('/');
        let sub = if is_a_part { sub.hide(false) } else { sub };
        with_completers(sub)
    })
}

/// Adds a completer to an argument, by the argument's name, which has one meaning in all commands.
fn with_completer(command: &str, arg: Arg) -> Arg {
    const NEW: [&str; 2] = ["man", "identity"];
    let completer = match arg.get_id().as_str() {
        "experiment" | "on" | "name" if command != "worker" => ArgValueCompleter::new(experiments),
        "scheduler" | "schedulers" if command != "schema" => ArgValueCompleter::new(schedulers),
        "dir" | "run" if !NEW.contains(&command) => ArgValueCompleter::new(runs),
        "set" => ArgValueCompleter::new(settings),
        _ => return arg,
    };
    arg.add(completer)
}

/// A completion with a line about it, if it begins with the typed text.
fn candidate(typed: &str, value: &str, about: &str) -> Option<CompletionCandidate> {
    let about = (!about.is_empty()).then(|| about.to_owned().into());
    value.starts_with(typed).then(|| CompletionCandidate::new(value).help(about))
}

/// Completions for an experiment: built-in experiments, and TOML files.
fn experiments(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    let builtin = BuiltinExperiment::all();
    let mut all: Vec<_> =
        builtin.filter_map(|one| candidate(text, &one.name(), &one.description())).collect();
    let is_toml = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
    all.extend(PathCompleter::any().filter(is_toml).complete(typed));
    all
}

/// Completions for a scheduler: built-in schedulers, and programs, which are named by a path with a slash.
fn schedulers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    if text.contains('/') {
        return PathCompleter::any().filter(is_a_program).complete(typed);
    }
    let names = known_name::all_schedulers().filter(|(name, _)| !name.contains('/'));
    let mut all: Vec<_> = names.filter_map(|(name, about)| candidate(text, name, about)).collect();
    let here = fs::read_dir(".").into_iter().flatten().flatten();
    let mut programs: Vec<String> = here
        .filter(|entry| is_a_program(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(text))
        .map(|name| format!("./{name}"))
        .collect();
    programs.sort();
    all.extend(programs.into_iter().map(CompletionCandidate::new));
    all
}

fn is_a_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Completions for a run: folders of runs, and folders that contain some.
fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    let mut names: Vec<String> = found()
        .into_iter()
        .filter_map(|run| Some(run.to_str()?.to_owned()))
        .filter(|run| run.starts_with(text))
        .collect();
    names.sort();
    let known = names.clone();
    let mut all: Vec<_> = names.into_iter().map(CompletionCandidate::new).collect();
    if all.is_empty() || text.contains('/') {
        let others = PathCompleter::any().filter(is_a_run).complete(typed);
        let is_known = |one: &CompletionCandidate| {
            let path = one.get_value().to_string_lossy();
            known.iter().any(|run| *run == path.trim_end_matches('/'))
        };
        all.extend(others.into_iter().filter(|one| !is_known(one)));
    }
    all
}

/// Completions for `--set`: keys of experiment files, each with an equals sign.
fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    let first_line = |about: &str| about.lines().next().unwrap_or_default().to_owned();
    keys()
        .into_iter()
        .filter_map(|(key, about)| candidate(text, &format!("{key}="), &first_line(&about)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: Vec<CompletionCandidate>) -> Vec<String> {
        all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn names_and_keys_go_on_from_what_was_typed() {
        let j60 = values(experiments(OsStr::new("j60-s")));
        assert_eq!(j60, ["j60-sc1", "j60-sc2", "j60-sc3", "j60-sc4", "j60-sc5"]);
        assert_eq!(values(schedulers(OsStr::new("burst"))), ["burst-hads"]);
        assert_eq!(values(settings(OsStr::new("scheduler.alp"))), ["scheduler.alpha="]);
        assert!(values(settings(OsStr::new("scheduler.alpha=0"))).is_empty());
    }

    #[test]
    fn every_grammar_that_completes_is_sound() {
        completed().debug_assert();
    }
}
