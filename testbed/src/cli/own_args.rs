//! A program of the user's own on the command line.

use std::path::PathBuf;

use clap::Args;
use dormouse_experiment::{OwnSaid, option};
use dormouse_units::{Bytes, Span};

use super::failure::Failure;
use dormouse_experiment::Override;

/// A program of the user's own as given on the command line, with the way to save its work.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A program of your own")]
pub(crate) struct OwnArgs {
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Greatest number of processes and threads of a task
    #[arg(long, value_name = "N", requires = "command", value_parser = clap::value_parser!(u32).range(1..=30_000))]
    pub(crate) threads: Option<u32>,
    /// What saves the work of a task: criu, notice, own, none
    #[arg(long, value_name = "HOW", requires = "command", value_parser = ["criu", "notice", "own", "none"])]
    pub(crate) saves: Option<String>,
}

/// A program of the user's own as given on the command line.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A program of your own")]
pub(crate) struct ProgramArgs {
    /// One task per matching file, such as 'data/*.csv', instead of the experiment's tasks; in the command {}
    /// stands for the file
    #[arg(long, value_name = "FILES", requires = "command")]
    pub(crate) each: Option<String>,
    /// Run time of each task on a vCPU of the reference speed, emulated time, such as 150s, or unknown [default:
    /// that of the experiment's tasks; if they are replaced and a run time is needed, one task is measured first]
    #[arg(long, value_name = "TIME", requires = "command", value_parser = runtime)]
    pub(crate) runtime: Option<String>,
    /// File that `dormouse measure` wrote for the command, from which the run time is taken
    #[arg(long, value_name = "FILE", requires = "command", conflicts_with = "runtime")]
    pub(crate) measured: Option<PathBuf>,
    /// Memory that each task needs, such as "512 MiB"
    #[arg(long, value_name = "SIZE", requires = "command")]
    pub(crate) memory: Option<Bytes>,
    /// A file or folder that each task's directory holds when it begins; a file that is a word of the command
    /// is there anyway
    #[arg(long = "input", value_name = "FILE", requires = "command")]
    pub(crate) inputs: Vec<String>,
    /// Files of a task's directory that are kept in the run's folder, such as '*.out'
    #[arg(long, value_name = "FILES", requires = "command")]
    pub(crate) outputs: Vec<String>,
    /// A command that checks a task's answer in a clean copy of its directory, with its inputs and its outputs, such as
    /// './check {}'
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub(crate) verify: Option<String>,
    /// A variable of each task's environment
    #[arg(long = "env-var", value_name = "NAME=VALUE", requires = "command")]
    pub(crate) variables: Vec<String>,
    /// The program that tasks run, and its arguments
    #[arg(index = 2, last = true, value_name = "COMMAND", help_heading = clap::builder::Resettable::Reset)]
    pub(crate) command: Vec<String>,
}

fn runtime(text: &str) -> Result<String, String> {
    if text == "unknown" {
        return Ok(text.to_owned());
    }
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match span {
        Span::ZERO => Err("it is too little; write a length above 0, such as 150s".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

impl OwnArgs {
    /// The user's own program as the options describe it, like [`ProgramArgs::said`] with the options on threads and
    /// saved work.
    pub(super) fn said(&self, is_alone: bool) -> Result<OwnSaid, Failure> {
        let mut said = self.program.said(is_alone)?;
        if said.keys.is_empty() {
            return Ok(said);
        }
        said.keys.extend(self.threads.map(|it| {
            let (path, value) = ("threads".to_owned(), it.to_string());
            Override { option: "--threads", path, value }
        }));
        said.keys.extend(self.saves.iter().map(|it| Override::text("--saves", "saves", it)));
        Ok(said)
    }

    /// The options as words of a command line, without the command itself.
    pub(super) fn options(&self, words: &mut Vec<String>) {
        self.program.options(words);
        option(words, "--threads", self.threads);
        option(words, "--saves", &self.saves);
    }
}

impl ProgramArgs {
    /// Whether a program is given without a run time and replaces the experiment's tasks: either one task per file is
    /// wanted, or the command needs no experiment (`is_alone`).
    pub(super) fn takes_a_run_time(&self, is_alone: bool) -> bool {
        let is_said = self.runtime.is_some() || self.measured.is_some();
        !self.command.is_empty() && !is_said && (is_alone || self.each.is_some())
    }

    /// The user's own program as the options describe it, as keys of a task. It replaces the experiment's tasks if one
    /// task per file is wanted, or if the command needs no experiment (`is_alone`).
    pub(super) fn said(&self, is_alone: bool) -> Result<OwnSaid, Failure> {
        if self.command.is_empty() {
            return Ok(OwnSaid::default());
        }
        let key = |option: &'static str, path: &str, value: String| Override {
            option,
            path: path.to_owned(),
            value,
        };
        let text = |option, path: &str, value: &str| Override::text(option, path, value);
        let mut keys = vec![key("COMMAND", "command", list(&self.command))];
        keys.extend(self.each.iter().map(|each| text("--each", "each", each)));
        keys.extend(self.runtime.iter().map(|runtime| text("--runtime", "runtime", runtime)));
        keys.extend(self.measured.iter().map(|_| text("--measured", "runtime", "measured")));
        keys.extend(self.memory.iter().map(|it| text("--memory", "memory", &it.to_string())));
        if !self.inputs.is_empty() {
            keys.push(key("--input", "inputs", list(&self.inputs)));
        }
        if !self.outputs.is_empty() {
            keys.push(key("--outputs", "outputs", list(&self.outputs)));
        }
        if let Some(verify) = &self.verify {
            let words =
                shlex::split(verify).filter(|words| !words.is_empty()).ok_or_else(|| {
                    let why =
                        "it can't be split into words as a shell does; close its quotation marks";
                    Failure::BadInput(format!("--verify '{verify}': {why}"))
                })?;
            keys.push(key("--verify", "verify", list(&words)));
        }
        if !self.variables.is_empty() {
            let pairs = self.variables.iter().map(|variable| {
                let pair = variable.split_once('=').filter(|(name, _)| !name.is_empty());
                let (name, value) = pair.ok_or_else(|| {
                    let why = "it sets nothing; write NAME=VALUE, such as OMP_NUM_THREADS=1";
                    Failure::BadInput(format!("--env-var '{variable}': {why}"))
                })?;
                Ok(format!("{} = {}", quoted(name), quoted(value)))
            });
            let pairs = pairs.collect::<Result<Vec<_>, Failure>>()?;
            keys.push(key("--env-var", "env", format!("{{ {} }}", pairs.join(", "))));
        }
        Ok(OwnSaid { keys, replaces_tasks: is_alone || self.each.is_some() })
    }

    /// The override for the file with measured run times, if the option is given.
    pub(super) fn settings(&self) -> Option<Override> {
        let file = self.measured.as_ref()?.to_string_lossy();
        Some(Override::text("--measured", "workload.measured", &file))
    }

    /// The options as words of a command line, without the command itself.
    pub(super) fn options(&self, words: &mut Vec<String>) {
        option(words, "--each", &self.each);
        option(words, "--runtime", &self.runtime);
        option(words, "--measured", self.measured.as_ref().map(|file| file.display()));
        option(words, "--memory", self.memory);
        option(words, "--input", &self.inputs);
        option(words, "--outputs", &self.outputs);
        option(words, "--verify", &self.verify);
        option(words, "--env-var", &self.variables);
    }

    /// The command, as words of a command line.
    pub(super) fn last_words(&self, words: &mut Vec<String>) {
        if !self.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.command.iter().cloned());
        }
    }
}

/// A text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Texts as a TOML list.
fn list(all: &[String]) -> String {
    toml::Value::from(all.to_vec()).to_string()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn own(command: &[&str]) -> ProgramArgs {
        ProgramArgs {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..ProgramArgs::default()
        }
    }

    #[test]
    fn what_is_said_becomes_keys_of_a_task_and_words_again() {
        let args = ProgramArgs {
            each: Some("data/*".to_owned()),
            verify: Some("./check 'a b'".to_owned()),
            variables: vec!["A=x=\"y\"".to_owned()],
            ..own(&["./s", "it's", "{}"])
        };
        let said = args.said(false).unwrap();
        assert!(said.replaces_tasks);
        let keys: Vec<_> = said.keys.iter().map(|key| (key.path.as_str(), &*key.value)).collect();
        assert_eq!(
            keys,
            [
                ("command", r#"["./s", "it's", "{}"]"#),
                ("each", r#""data/*""#),
                ("verify", r#"["./check", "a b"]"#),
                ("env", r#"{ "A" = 'x="y"' }"#),
            ]
        );
        let mut words = Vec::new();
        args.options(&mut words);
        args.last_words(&mut words);
        assert_eq!(words[words.len() - 4..], ["--", "./s", "it's", "{}"]);
    }

    #[test]
    fn what_saves_the_work_is_said_of_a_program_alone() {
        let args =
            OwnArgs { saves: Some("own".to_owned()), program: own(&["./s"]), ..OwnArgs::default() };
        let said = args.said(true).unwrap();
        assert!(
            said.keys.iter().any(|key| (key.path.as_str(), &*key.value) == ("saves", "\"own\""))
        );
        let nothing = OwnArgs { program: own(&[]), ..args };
        assert!(nothing.said(true).unwrap().keys.is_empty());
    }

    #[test]
    fn nothing_is_said_without_a_command_and_nonsense_is_refused() {
        assert!(own(&[]).said(true).unwrap().keys.is_empty());
        assert!(!own(&["x"]).said(false).unwrap().replaces_tasks);
        let verify = ProgramArgs { verify: Some("'".to_owned()), ..own(&["x"]) };
        let variable = ProgramArgs { variables: vec!["A".to_owned()], ..own(&["x"]) };
        assert!(verify.said(false).is_err() && variable.said(false).is_err());
    }
}
