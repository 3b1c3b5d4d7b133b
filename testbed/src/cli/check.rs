//! `dormouse check`.

use std::path::Path;

use serde_json::json;

use super::failure::Failure;
use super::print::print;
use super::recorded::{not_again, read_log};
use crate::check::{Checked, check};
use crate::output::is_unfinished;

/// Status 1 if something is wrong.
pub(crate) fn run(dir: &Path, as_json: bool) -> Result<(), Failure> {
    let ended = !is_unfinished(dir);
    let Checked { steps, jobs, violations } =
        check(&read_log(dir)?, ended).map_err(not_again(dir))?;
    let broken = || Failure::Broken(format!("{}: {} violations", dir.display(), violations.len()));
    if as_json {
        let broken_rules: Vec<_> = violations
            .iter()
            .map(|v| json!({ "step": v.seq, "at_s": v.at.as_secs_f64(), "what": v.what }))
            .collect();
        let all =
            json!({ "events": steps, "jobs": jobs, "ended": ended, "violations": broken_rules });
        print(&format!("{all:#}"))?;
        return if violations.is_empty() { Ok(()) } else { Err(broken()) };
    }
    if violations.is_empty() {
        let jobs = jobs.map(|jobs| format!(" of {jobs} jobs")).unwrap_or_default();
        let so_far = if ended { "" } else { " so far; the run did not come to its end" };
        return print(&format!("no rule broken in {steps} events{jobs}{so_far}"));
    }
    let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
    print(&lines.join("\n"))?;
    Err(broken())
}
