//! `events.jsonl`: a header, then one step a line.

use std::path::Path;

use dormouse_coordinator::Speedup;
use dormouse_engine::Step;
use dormouse_log::{FORMAT, LogReader, LogWriter};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::calibration::SpeedupChoice;
use crate::experiment::{Experiment, Kind};
use crate::record::Record;

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
    /// The experiment, with everything resolved.
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
        let record = Record::new(&self.experiment.setup);
        match self.mode {
            Mode::Virtual => record,
            Mode::Live => {
                let speedup = Speedup::from_f64(self.experiment.live.speedup);
                record.at(speedup.map_or(0, Speedup::emulated_us_per_second))
            }
        }
    }
}

/// Begins a log in a run's folder with its header.
///
/// # Errors
///
/// The system refuses.
pub fn begin_log(folder: &Path, header: &impl Serialize) -> Result<LogWriter, OutputError> {
    let mut log = LogWriter::create(&folder.join(dormouse_log::FILE))?;
    log.line(header)?;
    Ok(log)
}

/// Opens the log in a run's folder.
///
/// # Errors
///
/// It can't be read, or its header is damaged or of another format.
pub fn open_log(folder: &Path) -> Result<LogReader, OutputError> {
    Ok(LogReader::open(&folder.join(dormouse_log::FILE))?)
}

/// Of what kind a run is, by the first line of its log.
///
/// # Errors
///
/// There is no log, or it does not begin as one.
pub fn kind_of(folder: &Path) -> Result<Kind, OutputError> {
    #[derive(Deserialize)]
    struct First {
        #[serde(default)]
        kind: Kind,
    }
    let First { kind } = open_log(folder)?.header_as()?;
    Ok(kind)
}

/// Reads the first line of the log of a bag's run.
///
/// # Errors
///
/// It can't be read, or is damaged.
pub fn read_header(folder: &Path) -> Result<Header, OutputError> {
    Ok(open_log(folder)?.header_as()?)
}

/// Whether anything happened in the run whose log is in a folder.
#[must_use]
pub(crate) fn has_steps(folder: &Path) -> bool {
    open_log(folder).is_ok_and(|mut log| log.next_step::<IgnoredAny>().is_ok_and(|s| s.is_some()))
}

/// The log of a bag's run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLog {
    /// Its first line.
    pub header: Header,
    /// All others.
    pub steps: Vec<Step>,
    /// The last line was torn, as a kill leaves it, and is left out.
    pub torn: bool,
}

impl RunLog {
    /// Reads the log in a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or a line before the last is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        let mut log = open_log(folder)?;
        let (header, steps) = (log.header_as()?, read_steps(&mut log)?);
        Ok(Self { header, steps, torn: log.torn() })
    }
}

/// Reads all steps of a log.
///
/// # Errors
///
/// It can't be read, or a line before the last is damaged.
pub(crate) fn read_steps(log: &mut LogReader) -> Result<Vec<Step>, OutputError> {
    let mut steps = Vec::<Step>::new();
    while let Some(step) = log.next_known_step::<Step>()? {
        if step.seq != steps.len() as u64 {
            let why = format!("step {} where {} should be", step.seq, steps.len());
            return Err(log.damaged(why).into());
        }
        if steps.last().is_some_and(|before| step.at < before.at) {
            return Err(log.damaged("it is earlier than the step above it".to_owned()).into());
        }
        steps.push(step);
    }
    Ok(steps)
}
