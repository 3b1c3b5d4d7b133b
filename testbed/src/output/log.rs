//! `events.jsonl`: a header, then one step a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use dormouse_coordinator::Speedup;
use dormouse_engine::Step;
use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::calibrate::SpeedupChoice;
use crate::experiment::Experiment;
use crate::record::Record;

/// The version of the log's format.
pub const FORMAT: u32 = 1;

/// Where the machines of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Modelled, under a virtual clock.
    Virtual,
    /// Real, under a dilated clock.
    Live,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Virtual => "virtual",
            Self::Live => "live",
        })
    }
}

/// The first line of a log: all that is needed to read and to replay it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// The version of the program.
    pub dormouse: String,
    /// How it was run.
    pub mode: Mode,
    /// The command that makes the same run again.
    pub command: String,
    /// What was run.
    pub experiment: Experiment,
    /// Why a live run has its speed-up, and what its host was known to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupChoice>,
}

impl Header {
    /// The header of a run made by this version.
    #[must_use]
    pub fn new(mode: Mode, command: String, experiment: Experiment) -> Self {
        let dormouse = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, dormouse, mode, command, experiment, speedup: None }
    }

    /// A record of such a run, with nothing in it yet.
    #[must_use]
    pub fn record(&self) -> Record {
        let record = Record::new(self.experiment.setup.bag.tasks.len());
        match self.mode {
            Mode::Virtual => record,
            Mode::Live => {
                let speedup = Speedup::from_f64(self.experiment.live.speedup);
                record.at(speedup.map_or(0, Speedup::emulated_us_per_second))
            }
        }
    }
}

/// A log being written. The first failure is kept and reported at the end.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: BufWriter<File>,
    failed: Option<io::Error>,
}

impl LogWriter {
    /// Begins a log in `folder`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &Header) -> Result<Self, OutputError> {
        let path = folder.join("events.jsonl");
        let file = File::create(&path).map_err(|error| OutputError::io("write", &path, error))?;
        let mut log = Self { path, file: BufWriter::with_capacity(1 << 18, file), failed: None };
        log.line(header);
        Ok(log)
    }

    /// Adds a step.
    pub fn step(&mut self, step: &Step) {
        self.line(step);
    }

    fn line(&mut self, value: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.file, value)
            .map_err(io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        self.failed = written.err();
    }

    /// Writes out what is left.
    ///
    /// # Errors
    ///
    /// The first failure since the beginning.
    pub fn finish(mut self) -> Result<(), OutputError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
        .map_err(|error| OutputError::io("write", &self.path, error))
    }
}

/// Reads the first line of a run's log.
///
/// # Errors
///
/// It can't be read, or is damaged.
pub fn read_header(folder: &Path) -> Result<Header, OutputError> {
    open(folder).map(|(header, _)| header)
}

/// Whether anything happened in the run whose log is in a folder.
#[must_use]
pub(crate) fn has_steps(folder: &Path) -> bool {
    open(folder).is_ok_and(|(_, mut lines)| lines.next().is_some())
}

type NumberedLines = std::iter::Enumerate<io::Lines<BufReader<File>>>;

fn open(folder: &Path) -> Result<(Header, NumberedLines), OutputError> {
    let path = folder.join("events.jsonl");
    let file = File::open(&path).map_err(|error| OutputError::io("read", &path, error))?;
    let bad = |why: String| OutputError::BadLog { path: path.clone(), line: 1, why };
    let mut lines = BufReader::new(file).lines().enumerate();
    let (_, first) = lines.next().ok_or_else(|| bad("the log is empty".into()))?;
    let first = first.map_err(|error| bad(error.to_string()))?;
    let header: Header = serde_json::from_str(&first).map_err(|e| bad(e.to_string()))?;
    if header.format != FORMAT {
        let why = format!("its format is {}, this program reads {FORMAT}", header.format);
        return Err(bad(why));
    }
    Ok((header, lines))
}

/// Reads the log of a run's folder.
///
/// # Errors
///
/// It can't be read, or a line of it is damaged.
pub fn read_log(folder: &Path) -> Result<(Header, Vec<Step>), OutputError> {
    read(folder, Tail::Whole)
}

/// Reads the log of a run's folder, which may have been killed: a torn last line is left out.
///
/// # Errors
///
/// It can't be read, or a line before the last is damaged.
pub fn read_log_so_far(folder: &Path) -> Result<(Header, Vec<Step>), OutputError> {
    read(folder, Tail::MayBeTorn)
}

/// What the last line of a log may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    Whole,
    MayBeTorn,
}

fn read(folder: &Path, tail: Tail) -> Result<(Header, Vec<Step>), OutputError> {
    let path = folder.join("events.jsonl");
    let (header, mut lines) = open(folder)?;
    let mut steps = Vec::new();
    while let Some((n, line)) = lines.next() {
        match step(line, steps.len() as u64) {
            Ok(step) => steps.push(step),
            Err(_) if tail == Tail::MayBeTorn && lines.next().is_none() => break,
            Err(why) => return Err(OutputError::BadLog { path, line: n + 1, why }),
        }
    }
    Ok((header, steps))
}

/// The step on a line, which must have this number; else what is wrong with it.
fn step(line: io::Result<String>, seq: u64) -> Result<Step, String> {
    let line = line.map_err(|error| error.to_string())?;
    let step: Step = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    if step.seq != seq {
        return Err(format!("step {} where {seq} should be", step.seq));
    }
    Ok(step)
}
