//! Reads the measurements and outputs of a program from the log of a run with this program alone.

use std::collections::BTreeMap;

use dormouse_experiment::MeasuredProgram;
use dormouse_model::{Effect, Event, ProgramEnd, ProgramExit, Report, Step};
use dormouse_units::{Speedup, Time};

/// Reasons why a program could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The task did not end; with the reason.
    #[error("it did not end: {0}")]
    NoEnd(String),
}

/// Measurements of a program, and why it failed, if it did.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Time, memory and outputs of the task.
    pub measured: MeasuredProgram,
    /// How the task ended and its last output, in one line; `None`: the program and its check, if any, returned 0.
    pub failure: Option<String>,
}

/// Measures the only task of a run at this speed-up, from the run's steps.
///
/// # Errors
///
/// The task did not end.
pub fn measured(steps: &[Step], speedup: Speedup) -> Result<Sample, MeasureError> {
    let (mut sent, mut began, mut ended) = (None::<Time>, None::<Time>, None::<Time>);
    let (mut end, mut cpu_us, mut was_kept, mut not_dumped) = (None, 0, false, None);
    let mut failure = None;
    for step in steps {
        if step.effects.iter().any(|effect| matches!(effect, Effect::TaskSent { .. })) {
            sent = Some(step.at);
        }
        let Event::Machine { report, .. } = &step.event else { continue };
        match report {
            Report::TaskStarted { .. } => began = Some(step.at),
            Report::Ledger { own: Some(own), .. } => {
                (end, ended) = (Some(ProgramEnd::clone(own)), Some(step.at));
            }
            Report::TaskFinished { real_cpu_us, .. } => cpu_us = *real_cpu_us,
            Report::TaskFailed { real_cpu_us, why: said, .. } => {
                cpu_us = *real_cpu_us;
                // The last of its lines is what it died of.
                let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
                let how = lines().next().unwrap_or_default();
                failure = Some(match lines().next_back().filter(|last| *last != how) {
                    Some(last) => format!("{how} {last}"),
                    None => how.trim_end_matches(':').to_owned(),
                });
            }
            Report::CheckpointTaken { .. } => was_kept = true,
            Report::CheckpointFailed { why, .. } => not_dumped = Some(why.clone()),
            _ => {}
        }
    }
    let why = || failure.clone().unwrap_or_else(|| "the run ended before".to_owned());
    let (Some(end), Some(began), Some(ended)) = (end, began, ended) else {
        return Err(MeasureError::NoEnd(why()));
    };
    let (exit_status, signal) = match end.exit {
        Some(ProgramExit::Status(status)) => (Some(status), None),
        Some(ProgramExit::Signal(signal)) => (None, Some(signal)),
        None => return Err(MeasureError::NoEnd(why())),
    };
    let real_us = |from: Time, until: Time| {
        u64::try_from(speedup.to_real(until.since(from)).as_micros()).unwrap_or(u64::MAX)
    };
    let outputs = end.files.iter().filter_map(|file| {
        let path = file.path.strip_prefix(ProgramEnd::OUTPUTS)?.strip_prefix('/')?;
        Some((path.to_owned(), file.digest.clone()))
    });
    let measured = MeasuredProgram {
        exit_status,
        signal,
        wall_us: real_us(began, ended),
        began_after_us: sent.map_or(0, |sent| real_us(sent, began)),
        cpu_us,
        waited_us: end.real_waited_us,
        memory: end.memory,
        directory: end.directory,
        outputs: outputs.collect::<BTreeMap<_, _>>(),
        not_dumped: not_dumped.filter(|_| !was_kept),
        carried: None,
    };
    Ok(Sample { measured, failure })
}
