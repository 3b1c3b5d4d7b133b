//! A run's events through the policies again: the same decisions must come out, byte for byte.

use std::path::Path;

use dormouse_analysis::LiveFacts;
use dormouse_engine::Run;
use dormouse_log::{LogError, LogReader};
use dormouse_model::{Command, Step};
use serde_json::Value;

/// Why a log can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogReplayError {
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No run can be made of its header.
    #[error("{path}, line 1: no run can be made of this header")]
    Header {
        /// Path of the log.
        path: String,
        /// What is wrong with the header.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What a replay showed.
#[derive(Debug)]
pub struct ReplayReport {
    /// Number of steps replayed.
    pub steps: u64,
    /// The last line of the log was torn and left out.
    pub torn: bool,
    /// The first step that came out differently; the replay ended there.
    pub difference: Option<ReplayDifference>,
    /// The digest of all decisions.
    pub decisions_sha256: String,
    /// The run as it was at the end.
    pub run: Run,
    /// What was measured in it.
    pub facts: LiveFacts,
}

/// A step that came out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayDifference {
    /// The line of the log, from 1.
    pub line: u64,
    /// The text of that line: the step as it was recorded.
    pub recorded: String,
    /// The step that the same event makes now, as JSON.
    pub replayed: String,
}

/// Replays the log at `path` through the run that `make` builds from its header.
///
/// # Errors
///
/// The log can't be read. That it came out differently is no error but the result.
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

/// The next step of a log, whose counts are within those of an experiment: the run makes room for what it hears.
pub(crate) fn next_step(log: &mut LogReader) -> Result<Option<Step>, LogError> {
    let Some(step) = log.next_step::<Step>()? else { return Ok(None) };
    step.check_counts().map_err(|why| log.damaged(why))?;
    Ok(Some(step))
}

/// Feeds the event of the step that was read last to the run again, and compares what comes of it.
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
