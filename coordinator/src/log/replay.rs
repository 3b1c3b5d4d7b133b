//! Feeds a run's events to the policies again: the same decisions must come out, byte for byte.

use std::path::Path;

use dormouse_analysis::LiveFacts;
use dormouse_engine::Run;
use dormouse_log::{LogError, LogReader};
use dormouse_model::{Command, Step};
use serde_json::Value;

/// Reasons why a log can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogReplayError {
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No run can be made from the header of the log.
    #[error(
        "{path}, line 1: no run can be made from this header; give the log of a run, as this version or an older one wrote it"
    )]
    Header {
        /// Path of the log.
        path: String,
        /// The flaw of the header.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Result of a replay.
#[derive(Debug)]
pub struct ReplayReport {
    /// Number of steps replayed.
    pub steps: u64,
    /// True if the last line of the log was torn and left out.
    pub torn: bool,
    /// The first step that came out differently, where the replay ended; `None`: none did.
    pub difference: Option<ReplayDifference>,
    /// Digest of all decisions, in hexadecimal.
    pub decisions_sha256: String,
    /// The run at the end of the replay.
    pub run: Run,
    /// Facts measured in the run.
    pub facts: LiveFacts,
}

/// A step that came out differently in a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayDifference {
    /// Number of the line in the log, from 1.
    pub line: u64,
    /// Text of the line: the recorded step.
    pub recorded: String,
    /// The step that the event makes now, as JSON.
    pub replayed: String,
}

/// Replays the log at `path` through the run that `make` builds from its header.
///
/// # Errors
///
/// The log can't be read, or no run can be made. A step that comes out differently is a result and no error.
pub fn replay_log(
    path: &Path,
    make: impl FnOnce(&Value) -> Result<Run, Box<dyn std::error::Error + Send + Sync>>,
) -> Result<ReplayReport, LogReplayError> {
    let mut log = LogReader::open(path)?;
    let mut run = make(log.header())
        .map_err(|source| LogReplayError::Header { path: path.display().to_string(), source })?;
    run.setup().check_counts().map_err(|why| log.damaged(why))?;
    let (mut steps, mut difference, mut facts) = (0, None, LiveFacts::default());
    while let Some(step) = next_step(&mut log)? {
        match replay_step(&mut run, step, &log) {
            Ok((step, _)) => facts.see(&step),
            Err(different) => {
                difference = Some(different);
                break;
            }
        }
        steps += 1;
    }
    let (torn, decisions_sha256) = (log.torn(), run.digest());
    Ok(ReplayReport { steps, torn, difference, decisions_sha256, run, facts })
}

/// Reads the next step of a log and checks that its counts are possible in an experiment, as the run allocates memory
/// by them.
pub(crate) fn next_step(log: &mut LogReader) -> Result<Option<Step>, LogError> {
    let Some(step) = log.next_step::<Step>()? else { return Ok(None) };
    step.check_counts().map_err(|why| log.damaged(why))?;
    Ok(Some(step))
}

/// Feeds the event of the step that was just read to the run again, and compares the outcome.
pub(crate) fn replay_step(
    run: &mut Run,
    step: Step,
    log: &LogReader,
) -> Result<(Step, Vec<Command>), ReplayDifference> {
    let (replayed, commands) = run.handle_again(&step);
    // A step holds only integers and text: this can't fail.
    let (recorded, json) = (log.text(), serde_json::to_string(&replayed).unwrap_or_default());
    if json == recorded {
        Ok((replayed, commands))
    } else {
        Err(ReplayDifference { line: log.line(), recorded, replayed: json })
    }
}
