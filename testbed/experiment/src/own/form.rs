//! What a task of the user's own is, before anything stands for what is in braces: the keys of its section, and
//! in their place the cells of a row.

use std::path::PathBuf;

use dormouse_documents::{Node, Place};
use dormouse_tasks::own::Saves;
use dormouse_units::{Bytes, Span};

use super::inputs::{Flaw, within};
use super::table::TaskRow;
use crate::sections::{ReferenceSection, Runtime, TaskSection, VerifySection};

/// The most that a task's directory may hold where nothing is said.
pub(super) const DIRECTORY: Bytes = Bytes::new(1 << 30);
/// The most processes and threads of a task where nothing is said: of libraries that start one for each core of a
/// large host, too.
pub(super) const THREADS: u32 = 256;
const MOST_THREADS: u32 = 30_000;

/// The time that a task takes, as far as its section or row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeGiven {
    /// As the section's key has it.
    BySection,
    /// Everywhere as long.
    Everywhere(Span),
    /// As it was measured.
    Measured,
    /// Nobody knows how long it takes.
    Unknown,
}

/// Something that names files, and the folder that it names them in.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) text: String,
    pub(super) base: PathBuf,
    pub(super) place: Place,
}

impl Named {
    /// The folder that the files may not lie outside of.
    pub(super) fn within(&self) -> Option<PathBuf> {
        within(&self.place, &self.base)
    }
}

/// What is checked: by a command, or against the outputs in a folder.
#[derive(Clone, Debug)]
pub(super) enum Check {
    Command(Vec<Named>),
    Outputs(Named),
}

/// A task with its braces.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) place: Place,
    pub(super) name: Option<String>,
    pub(super) command: Vec<Named>,
    pub(super) env: Vec<(String, Named)>,
    pub(super) inputs: Vec<Named>,
    pub(super) outputs: Vec<Named>,
    pub(super) mounts: Vec<Named>,
    pub(super) check: Option<Check>,
    pub(super) deterministic: bool,
    pub(super) saves: Saves,
    pub(super) directory: Bytes,
    pub(super) threads: u32,
    pub(super) memory: Option<Bytes>,
    pub(super) runtime: RuntimeGiven,
    pub(super) submitted: Span,
}

impl Form {
    /// What the section at `node` says.
    pub(super) fn from_section(section: &TaskSection, node: &Node) -> Self {
        let named = |text: &str, at: &str| {
            let place = node.innermost(at).place.clone();
            Named { text: text.to_owned(), base: place.file(""), place }
        };
        let list = |list: &[String], key: &str| {
            let each = list.iter().enumerate();
            each.map(|(n, text)| named(text, &format!("{key}.{n}"))).collect::<Vec<_>>()
        };
        let command = section.command.as_deref().unwrap_or_default();
        let env = section.env.iter();
        let check = section.verify.as_ref().map(|verify| match verify {
            VerifySection::Command(command) => Check::Command(list(command, "verify")),
            VerifySection::Outputs(ReferenceSection { outputs_of }) => {
                Check::Outputs(named(outputs_of, "verify.outputs-of"))
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

    /// The same with what a row says in the place of it; files that the row names are in `base`.
    ///
    /// # Errors
    ///
    /// The cell that makes no sense, by what is wrong with it.
    pub(super) fn with(&self, row: &TaskRow, base: &std::path::Path) -> Result<Self, Flaw> {
        let named = |text: String| Named { text, base: base.to_owned(), place: row.place.clone() };
        let words = |key: &str, text: &str| {
            let words = shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(|| {
                let what = format!("{key}: '{text}' is no words of a shell");
                (what, "close its quotation marks".to_owned())
            })?;
            Ok::<Vec<Named>, Flaw>(words.into_iter().map(named).collect())
        };
        let mut form = Self { place: row.place.clone(), ..self.clone() };
        for (key, cell) in &row.cells {
            match key.as_str() {
                "name" => form.name = Some(cell.clone()),
                "command" => form.command = words(key, cell)?,
                "inputs" => form.inputs.extend(words(key, cell)?),
                "outputs" => form.outputs = words(key, cell)?,
                "verify" => form.check = Some(Check::Command(words(key, cell)?)),
                "saves" => form.saves = saves(cell)?,
                "deterministic" => form.deterministic = yes_or_no(key, cell)?,
                "directory" => form.directory = quantity(key, cell, "\"1 GiB\"")?,
                "memory" => form.memory = Some(quantity(key, cell, "\"512 MiB\"")?),
                "submitted" => form.submitted = quantity(key, cell, "\"10m\"")?,
                "threads" => {
                    let threads = cell.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
                    form.threads = threads.ok_or_else(|| {
                        let what = format!("{key}: '{cell}' is no number of threads");
                        (what, format!("write a whole number from 1 to {MOST_THREADS}"))
                    })?;
                }
                "runtime" => {
                    form.runtime = match cell.as_str() {
                        "unknown" => RuntimeGiven::Unknown,
                        "measured" => RuntimeGiven::Measured,
                        cell => match quantity(key, cell, "\"150s\"")? {
                            Span::ZERO => {
                                let what = format!("{key}: '{cell}' is too little");
                                return Err((what, "write more than nothing".to_owned()));
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
        (what, "write one of these".to_owned())
    })
}

fn saves(word: &str) -> Result<Saves, Flaw> {
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

/// A time or an amount of memory.
fn quantity<T: std::str::FromStr>(key: &str, cell: &str, like: &str) -> Result<T, Flaw>
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
