//! `dormouse doctor`.

use super::failure::Failure;
use super::print::print;
use super::terminal;
use crate::doctor::{Diagnosis, State, examine};

/// Status 0 if live runs are possible.
pub(crate) fn run(as_json: bool) -> Result<(), Failure> {
    let diagnosis = examine();
    if as_json {
        print(&format!("{:#}", serde_json::json!(diagnosis)))?;
    } else {
        print(&diagnosis.table(terminal::stdout()))?;
    }
    match missing(&diagnosis) {
        None => Ok(()),
        Some(missing) => {
            Err(Failure::Broken(format!("no live runs here: {missing}; virtual runs work")))
        }
    }
}

/// What live runs lack here, as a clause.
pub(super) fn missing(diagnosis: &Diagnosis) -> Option<String> {
    let missing = diagnosis.findings.iter().filter(|f| f.state == State::Missing);
    let names: Vec<_> = missing.map(|f| f.name.as_str()).collect();
    (!diagnosis.live).then(|| format!("{} missing", names.join(", ")))
}
