//! Progress of a command on standard error: a changing line on a terminal, else a line every ten seconds.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use dormouse_experiment::Experiment;
use indicatif::{ProgressBar, ProgressStyle};

use super::args::Say;
use crate::said;

/// Time between two lines of progress if standard error is not a terminal.
const QUIET_FOR: Duration = Duration::from_secs(10);

/// Display of a command's progress.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Progress bar; hidden if standard error is not a terminal, or if progress is not to be shown.
    bar: ProgressBar,
    /// Instant at which a line was last written; `None`: no lines are written.
    said: Option<Instant>,
    began: Instant,
    what: String,
}

impl Say {
    /// Starts to show the progress of a command that handles `count` things called `what`.
    pub(super) fn progress(self, count: usize, what: &str) -> Progress {
        Progress::new(self.quiet || self.json, count, what)
    }
}

impl Progress {
    /// The progress of `count` things called `what`; nothing is ever printed if `is_silent`.
    pub(crate) fn new(is_silent: bool, count: usize, what: &str) -> Self {
        let (began, is_terminal) = (Instant::now(), std::io::stderr().is_terminal());
        let bar = if is_silent { ProgressBar::hidden() } else { ProgressBar::new(count as u64) };
        if let Ok(style) = ProgressStyle::with_template(template(count as u64)) {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        let said = (!is_silent && !is_terminal).then_some(began);
        Self { bar, said, began, what: what.to_owned() }
    }

    /// Shows that `done` of `of` items are done (`of` is 0 if unknown), with the text `how`, and the remaining real
    /// seconds `left_s` if these are known better than from the items.
    pub(crate) fn show(&mut self, done: u64, of: u64, how: &str, left_s: Option<f64>) {
        self.bar.set_length(of);
        self.bar.set_position(done);
        let left = left_s.or_else(|| self.by_what_is_done(done, of));
        let left = left.map(|s| format!("about {} left", in_words(s)));
        let said = [left.as_deref().unwrap_or_default(), how];
        let message = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        let message = message.join(", ");
        if let Some(said) = self.said.filter(|said| said.elapsed() >= QUIET_FOR) {
            self.said = Some(said + said.elapsed());
            let all = if of > 0 { format!(" of {of}") } else { String::new() };
            let parts = [format!("{done}{all} {}", self.what), message.clone()];
            let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            said::note(&parts.join(", "));
        }
        self.bar.set_message(message);
    }

    /// Prints a separate line above the progress.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| said::note(line));
    }

    /// Whether the progress is of things called `what`.
    pub(crate) fn is_of(&self, what: &str) -> bool {
        self.what == what
    }

    /// Remaining real seconds, if each remaining item takes as long as the finished ones did; `None` if that is unknown.
    fn by_what_is_done(&self, done: u64, of: u64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (done_f, left) = (done as f64, of.saturating_sub(done) as f64);
        (done > 0 && of > 0).then(|| self.began.elapsed().as_secs_f64() / done_f * left)
    }
}

impl Drop for Progress {
    /// Removes the progress line.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Template of the progress line on a terminal, for a run of `of` tasks, jobs or requests; 0: their number is unknown, and
/// the line has no bar. The message at its end is cut off at the terminal's width.
const fn template(of: u64) -> &'static str {
    match of {
        0 => "{pos} {prefix} {elapsed} {wide_msg}",
        _ => "{pos}/{len} {prefix} {bar:24} {elapsed} {wide_msg}",
    }
}

/// Noun for the items that are counted while an experiment runs.
pub(super) const fn counted(experiment: &Experiment) -> &'static str {
    match (&experiment.scheduler, &experiment.jobs) {
        (Some(_), _) => "tasks",
        (None, Some(_)) => "jobs",
        (None, None) => "requests",
    }
}

/// A length of real time in hours, minutes or seconds, whichever suits it.
fn in_words(s: f64) -> String {
    match s.max(0.0) {
        s if s >= 5_400.0 => format!("{:.1} h", s / 3_600.0),
        s if s >= 90.0 => format!("{:.0} min", s / 60.0),
        s => format!("{s:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_in_a_unit_that_fits() {
        for (s, text) in [(-3.0, "0 s"), (89.4, "89 s"), (91.0, "2 min"), (9_000.0, "2.5 h")] {
            assert_eq!(in_words(s), text);
        }
    }

    /// Runs of parallel jobs and requests have no progress bar, because the total number is unknown.
    #[test]
    fn no_bar_is_shown_where_nobody_knows_how_many_there_are() {
        assert!(!template(0).contains("{bar") && !template(0).contains("{len}"), "{}", template(0));
        assert!(template(3).contains("{bar") && template(3).contains("{len}"), "{}", template(3));
        let progress = Progress::new(true, 0, "jobs");
        assert_eq!(progress.by_what_is_done(12, 0), None);
    }

    #[test]
    fn nothing_is_left_of_what_is_done() {
        let progress = Progress::new(true, 4, "runs");
        assert_eq!(progress.by_what_is_done(0, 4), None);
        assert!(progress.by_what_is_done(4, 4).is_some_and(|left| left.abs() < 1e-9));
        assert!(progress.by_what_is_done(1, 4).is_some_and(|left| left >= 0.0));
    }
}
