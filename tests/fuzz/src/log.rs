//! The log of a run, `events.jsonl`, and what is computed from it.

use dormouse_analysis::RunMode;
use dormouse_report::check::check;
use dormouse_report::explain::explain;
use dormouse_report::output::{RunBeginning, RunLog, live_header};
use dormouse_report::replay::replay;
use dormouse_report::results::stored_results;
use dormouse_report::run_view::RunResults;
use dormouse_report::verdict::live_results;
use dormouse_units::Time;
use dormouse_view::Terminal;

use super::scratch::Scratch;

/// Reads, checks and explains a log; whatever the log says, each of these ends with a value or an error.
pub(crate) fn log(bytes: &[u8]) {
    Scratch::with(|scratch| {
        scratch.write("events.jsonl", bytes);
        let folder = scratch.path();
        let _ = (RunBeginning::read(folder), live_header(folder));
        let Ok(log) = RunLog::read(folder) else { return };
        // Without its steps it would be made again: that takes as long as its experiment says.
        if log.steps.is_some() {
            told(&log);
        }
    });
}

/// Computes the results of a log, as `dormouse check` does to compare them.
pub(crate) fn results(bytes: &[u8]) {
    Scratch::with(|scratch| {
        scratch.write("events.jsonl", bytes);
        let folder = scratch.path();
        let (Ok(log), Ok(live)) = (RunLog::read(folder), live_header(folder)) else { return };
        let Some(steps) = &log.steps else { return };
        let text = |results: RunResults<'_>| drop(results.view().to_text(Terminal::PLAIN));
        if log.header.mode == RunMode::Live {
            let made = live_results(&log.header, &live, steps, folder);
            made.into_iter().for_each(|(results, _)| text(results));
        }
        let all = (Time::ZERO, Time::from_micros(u64::MAX));
        stored_results(&log, all).into_iter().for_each(text);
    });
}

fn told(log: &RunLog) {
    for ended in [true, false] {
        if let Ok(checked) = check(log, ended) {
            checked.violations.iter().for_each(|violation| drop(violation.to_string()));
        }
    }
    for what in ["task0", "task1", "vm0", "vm1", "job1", "request0"] {
        if let Ok(Some(explanation)) = explain(log, what) {
            drop(explanation.to_string());
        }
    }
    drop(log.header.in_words());
    if log.header.experiment.own_programs.is_empty() && is_short(log) {
        let _ = replay(log);
    }
}

/// Whether the scheduler of a log decides without a search: the experiment could make a search very long.
fn is_short(log: &RunLog) -> bool {
    let name = log.header.experiment.scheduler_name();
    ["fifo", "fcfs", "easy", ""].contains(&name.as_str())
}
