//! `dormouse check`.

use std::path::Path;

use dormouse_engine::part_of;
use dormouse_units::Span;

use super::failure::Failure;
use super::print::print;
use super::torn::say_torn;
use crate::batch;
use crate::check::check;
use crate::experiment::Kind;
use crate::output::{Mode, RunLog, is_unfinished};

/// How late, in seconds of real time, a worker's report may reach the log of a live run. Far more
/// than any was seen to be, and too little for a worker that earns credits at a wrong rate.
const LATENESS_S: f64 = 1.0;

/// Status 1 if something is wrong.
pub(crate) fn run(dir: &Path) -> Result<(), Failure> {
    if crate::output::kind_of(dir)? == Kind::Batch {
        return super::batch::check(dir);
    }
    let RunLog { header, steps, torn } = RunLog::read(dir)?;
    say_torn(dir, torn)?;
    let experiment = &header.experiment;
    let lateness = match header.mode {
        Mode::Virtual => Span::ZERO,
        Mode::Live => {
            Span::from_secs_f64(LATENESS_S * experiment.live.speedup).unwrap_or(Span::ZERO)
        }
    };
    let ended = !is_unfinished(dir);
    let of = experiment.tenants();
    // What is wrong is said with the numbers that the run's files have.
    let bag: Vec<_> = steps.iter().map(|step| part_of(step, &of, 0)).collect();
    let violations = check(&experiment.whole_setup(), &bag, lateness, ended);
    let mut lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
    if let Some(jobs) = batch::jobs_log(&header, &steps) {
        let checked = batch::check(&jobs, ended)?;
        lines.extend(checked.violations.iter().map(|violation| format!("jobs: {violation}")));
    }
    if lines.is_empty() {
        let so_far = so_far(ended);
        return print(&format!("{} steps: nothing that must not be{so_far}", steps.len()));
    }
    print(&lines.join("\n"))?;
    Err(Failure::Broken(format!("{}: {} violations", dir.display(), lines.len())))
}

/// What is said besides of a run that did not come to its end.
pub(super) const fn so_far(ended: bool) -> &'static str {
    if ended { "" } else { " so far; the run did not come to its end" }
}
