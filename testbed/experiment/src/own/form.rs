//! A task of a user's own program before its placeholders are filled: the keys of its section,
//! overridden by the cells of a row.

use std::path::PathBuf;

use dormouse_documents::{Node, Place};
use dormouse_tasks::own::Saves;
use dormouse_units::{Bytes, Span};

use super::inputs::{Flaw, within};
use super::table::TaskRow;
use crate::sections::{ReferenceSection, Runtime, TaskSection, VerifySection};

/// Default size limit of a task's directory.
pub(super) const DIRECTORY: Bytes = Bytes::new(1 << 30);
/// Default limit of a task's processes and threads: enough for libraries that start one for each
/// core of a large host.
pub(super) const THREADS: u32 = 256;
const MOST_THREADS: u32 = 30_000;

/// Source of a task's run time in its section or row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeGiven {
    /// The key `runtime` of the section gives the run time.
    BySection,
    /// The task has this run time on every instance type.
    Everywhere(Span),
    /// The run time is the one that `dormouse measure` found.
    Measured,
    /// The run time is not known.
    Unknown,
}

/// A path or pattern of files that an experiment names, with the folder that it is relative to.
#[derive(Clone, Debug)]
pub(super) struct NamedFiles {
    pub(super) text: String,
    pub(super) base: PathBuf,
    pub(super) place: Place,
}

impl NamedFiles {
    /// Folder outside of which the files that the path or pattern names must not be; `None` if they may be anywhere.
    pub(super) fn within(&self) -> Option<PathBuf> {
        within(&self.place, &self.base)
    }
}

/// Check of a task's answer: by a command, or against the outputs in a folder.
#[derive(Clone, Debug)]
pub(super) enum AnswerCheck {
    Command(Vec<NamedFiles>),
    Outputs(NamedFiles),
}

/// A task of a section or of a table's row, whose command still has placeholders.
#[derive(Clone, Debug)]
pub(super) struct TaskForm {
    pub(super) place: Place,
    pub(super) name: Option<String>,
    pub(super) command: Vec<NamedFiles>,
    pub(super) env: Vec<(String, NamedFiles)>,
    pub(super) inputs: Vec<NamedFiles>,
    pub(super) outputs: Vec<NamedFiles>,
    pub(super) mounts: Vec<NamedFiles>,
    pub(super) check: Option<AnswerCheck>,
    pub(super) deterministic: bool,
    pub(super) saves: Saves,
    pub(super) directory: Bytes,
    pub(super) threads: u32,
    pub(super) memory: Option<Bytes>,
    pub(super) runtime: RuntimeGiven,
    pub(super) submitted: Span,
}

impl TaskForm {
    /// Reads the task of the section at `node`.
    pub(super) fn from_section(section: &TaskSection, node: &Node) -> Self {
        let named = |text: &str, at: &str| {
            let place = node.innermost(at).place.clone();
            NamedFiles { text: text.to_owned(), base: place.file(""), place }
        };
        let list = |list: &[String], key: &str| {
            let each = list.iter().enumerate();
            each.map(|(n, text)| named(text, &format!("{key}.{n}"))).collect::<Vec<_>>()
        };
        let command = section.command.as_deref().unwrap_or_default();
        let env = section.env.iter();
        let check = section.verify.as_ref().map(|verify| match verify {
            VerifySection::Command(command) => AnswerCheck::Command(list(command, "verify")),
            VerifySection::Outputs(ReferenceSection { outputs_of }) => {
                AnswerCheck::Outputs(named(outputs_of, "verify.outputs-of"))
            }
        });
        Self {
            place: node.place_of("command").clone(),
            name: section.name.clone(),
            command: list(command, "command"),
            env: env.map(|(key, value)| (key.clone(), named(value, "env"))).collect(),
            inputs: list(&section.inputs, "inputs"),
            outputs: list(&section.outputs, "outputs"),
            mounts: list(&section.mounts, "mounts"),
            check,
            deterministic: section.deterministic,
            saves: section.saves.as_ref().map(|saves| saves.saves()).unwrap_or_default(),
            directory: section.directory.unwrap_or(DIRECTORY),
            threads: section.threads.unwrap_or(THREADS),
            memory: section.memory,
            runtime: match &section.runtime {
                None => RuntimeGiven::Unknown,
                Some(Runtime::Everywhere(word)) if word == "unknown" => RuntimeGiven::Unknown,
                Some(Runtime::Everywhere(word)) if word == "measured" => RuntimeGiven::Measured,
                Some(_) => RuntimeGiven::BySection,
            },
            submitted: section.submitted,
        }
    }

    /// Returns a task whose keys are overridden by the cells of a row; files named in the row are relative to `base`.
    ///
    /// # Errors
    ///
    /// The wrong cell, and the reason.
    pub(super) fn with(&self, row: &TaskRow, base: &std::path::Path) -> Result<Self, Flaw> {
        let named =
            |text: String| NamedFiles { text, base: base.to_owned(), place: row.place.clone() };
        let words = |key: &str, text: &str| {
            let words = shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(|| {
                let what = format!("{key}: '{text}' can't be split into words as a shell does");
                (what, "close its quotation marks".to_owned())
            })?;
            Ok::<Vec<NamedFiles>, Flaw>(words.into_iter().map(named).collect())
        };
        let mut form = Self { place: row.place.clone(), ..self.clone() };
        for (key, cell) in &row.cells {
            match key.as_str() {
                "name" => form.name = Some(cell.clone()),
                "command" => form.command = words(key, cell)?,
                "inputs" => form.inputs.extend(words(key, cell)?),
                "outputs" => form.outputs = words(key, cell)?,
                "verify" => form.check = Some(AnswerCheck::Command(words(key, cell)?)),
                "saves" => form.saves = parse_saves(cell)?,
                "deterministic" => form.deterministic = yes_or_no(key, cell)?,
                "directory" => form.directory = parse_quantity(key, cell, "\"1 GiB\"")?,
                "memory" => form.memory = Some(parse_quantity(key, cell, "\"512 MiB\"")?),
                "submitted" => form.submitted = parse_quantity(key, cell, "\"10m\"")?,
                "threads" => {
                    let threads = cell.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
                    form.threads = threads.ok_or_else(|| {
                        let what = format!("{key}: '{cell}' is not a possible number of threads");
                        (what, format!("write a whole number from 1 to {MOST_THREADS}"))
                    })?;
                }
                "runtime" => {
                    form.runtime = match cell.as_str() {
                        "unknown" => RuntimeGiven::Unknown,
                        "measured" => RuntimeGiven::Measured,
                        cell => match parse_quantity(key, cell, "\"150s\"")? {
                            Span::ZERO => {
                                let what = format!("{key}: '{cell}' is too little");
                                return Err((
                                    what,
                                    "write a length above 0, such as 150s".to_owned(),
                                ));
                            }
                            runtime => RuntimeGiven::Everywhere(runtime),
                        },
                    }
                }
                _ => {}
            }
        }
        Ok(form)
    }
}

fn yes_or_no(key: &str, word: &str) -> Result<bool, Flaw> {
    word.parse().map_err(|_| {
        let what = format!("{key}: '{word}' is neither true nor false");
        (what, "write true or false".to_owned())
    })
}

fn parse_saves(word: &str) -> Result<Saves, Flaw> {
    Ok(match word {
        "criu" => Saves::Criu,
        "notice" => Saves::Notice { signal: None, file: None },
        "own" => Saves::Own,
        "none" => Saves::None,
        _ => {
            let what = format!("saves: there is no '{word}'");
            return Err((what, "write one of criu, notice, own, none".to_owned()));
        }
    })
}

/// Parses a time or an amount of memory.
fn parse_quantity<T: std::str::FromStr>(key: &str, cell: &str, like: &str) -> Result<T, Flaw>
where
    T::Err: std::fmt::Display,
{
    cell.parse().map_err(|error: T::Err| {
        let error = error.to_string();
        match error.split_once("; ") {
            Some((what, remedy)) => (format!("{key}: {what}"), remedy.to_owned()),
            None => (format!("{key}: {error}"), format!("write it like {like}")),
        }
    })
}
