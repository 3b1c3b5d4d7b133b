//! `events.jsonl` of a batch run: a header, then one step a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dormouse_batch::{Decision, Event};
use dormouse_units::Time;
use serde::{Deserialize, Serialize};

use super::BatchExperiment;
use crate::experiment::Kind;
use crate::output::{FORMAT, Mode, OutputError};

/// The log of a run in virtual time holds so many jobs at most: it can be made again from its
/// header, and a trace of millions would leave gigabytes.
pub const MOST_LOGGED: u64 = 50_000;

/// The first line: all that is needed to read the log and to make the run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchHeader {
    /// What kind of run it is the log of.
    pub kind: Kind,
    /// The version of the format.
    pub format: u32,
    /// The version of the program.
    pub dormouse: String,
    /// How it was run.
    pub mode: Mode,
    /// The command that makes the same run again.
    pub command: String,
    /// Processors of the machine.
    pub machine: u32,
    /// What was run.
    pub experiment: BatchExperiment,
}

impl BatchHeader {
    /// The header of a run made by this version.
    #[must_use]
    pub fn new(mode: Mode, command: String, machine: u32, experiment: BatchExperiment) -> Self {
        let dormouse = env!("CARGO_PKG_VERSION").to_owned();
        Self { kind: Kind::Batch, format: FORMAT, dormouse, mode, command, machine, experiment }
    }

    /// Reads the header of the log in a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or it is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        Self::of(lines(folder)?.next(), &path_in(folder))
    }

    /// The header in the first line of the log at `path`.
    fn of(first: Option<io::Result<String>>, path: &Path) -> Result<Self, OutputError> {
        let bad = |why: String| OutputError::BadLog { path: path.to_owned(), line: 1, why };
        let first = first.ok_or_else(|| bad("the log is empty".into()))?;
        let first = first.map_err(|error| bad(error.to_string()))?;
        let header: Self = serde_json::from_str(&first).map_err(|error| bad(error.to_string()))?;
        if header.format != FORMAT {
            let format = header.format;
            return Err(bad(format!("its format is {format}, this program reads {FORMAT}")));
        }
        Ok(header)
    }
}

/// The log in a run's folder.
fn path_in(folder: &Path) -> PathBuf {
    folder.join("events.jsonl")
}

fn lines(folder: &Path) -> Result<impl Iterator<Item = io::Result<String>>, OutputError> {
    let path = path_in(folder);
    let file = File::open(&path).map_err(|error| OutputError::io("read", &path, error))?;
    Ok(BufReader::new(file).lines())
}

/// One instant: what the scheduler heard, and what it decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: Time,
    /// In the order in which it heard of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// In the order in which it made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
}

/// The line that stands for all steps of a run that has too many.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LeftOut {
    left_out: String,
}

/// A log being written.
#[derive(Debug)]
pub struct BatchLogWriter {
    path: PathBuf,
    file: BufWriter<File>,
    /// Where the steps begin.
    head: u64,
    left_out: bool,
}

impl BatchLogWriter {
    /// Begins a log in `folder`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &BatchHeader) -> Result<Self, OutputError> {
        let path = path_in(folder);
        let file = File::create(&path).map_err(|error| OutputError::io("write", &path, error))?;
        let mut file = BufWriter::with_capacity(1 << 16, file);
        let head = line(&mut file, header)
            .and_then(|()| file.stream_position())
            .map_err(|error| OutputError::io("write", &path, error))?;
        Ok(Self { path, file, head, left_out: false })
    }

    /// Adds a step.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, step: &Step) -> Result<(), OutputError> {
        if self.left_out {
            return Ok(());
        }
        line(&mut self.file, step).map_err(|error| self.refused(error))
    }

    /// Whether steps are still wanted.
    #[must_use]
    pub const fn keeps(&self) -> bool {
        !self.left_out
    }

    /// Takes all steps back: there are too many.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn leave_out(&mut self) -> Result<(), OutputError> {
        if std::mem::replace(&mut self.left_out, true) {
            return Ok(());
        }
        let left_out = format!(
            "the steps: more than {MOST_LOGGED} jobs; replay, explain and check make the run again"
        );
        self.file
            .flush()
            .and_then(|()| self.file.get_mut().set_len(self.head))
            .and_then(|()| self.file.seek(SeekFrom::Start(self.head)))
            .and_then(|_| line(&mut self.file, &LeftOut { left_out }))
            .map_err(|error| self.refused(error))
    }

    /// Writes out what is left.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.file.flush().map_err(|error| self.refused(error))
    }

    fn refused(&self, error: io::Error) -> OutputError {
        OutputError::io("write", &self.path, error)
    }
}

fn line(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, value)?;
    to.write_all(b"\n")
}

/// A log that was read.
#[derive(Debug)]
pub struct BatchLog {
    /// Its first line.
    pub header: BatchHeader,
    /// Its steps; `None` if they were too many to be kept.
    pub steps: Option<Vec<Step>>,
}

impl BatchLog {
    /// Reads the log of a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or a line of it is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        let path = path_in(folder);
        let bad = |line, why: String| OutputError::BadLog { path: path.clone(), line, why };
        let mut lines = lines(folder)?.zip(1..);
        let header = BatchHeader::of(lines.next().map(|(line, _)| line), &path)?;
        let mut steps = Vec::<Step>::new();
        for (line, n) in lines {
            let line = line.map_err(|error| bad(n, error.to_string()))?;
            if serde_json::from_str::<LeftOut>(&line).is_ok() {
                return Ok(Self { header, steps: None });
            }
            let step: Step =
                serde_json::from_str(&line).map_err(|error| bad(n, error.to_string()))?;
            if steps.last().is_some_and(|before| step.at < before.at) {
                return Err(bad(n, "it is earlier than the step above it".into()));
            }
            steps.push(step);
        }
        Ok(Self { header, steps: Some(steps) })
    }
}
