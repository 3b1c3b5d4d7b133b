//! `dormouse doctor`.

use super::failure::Failure;
use super::print::print;
use crate::doctor::{State, examine};
use crate::output::Style;

/// Status 0 if live runs are possible.
pub(crate) fn run(as_json: bool) -> Result<(), Failure> {
    let diagnosis = examine();
    if as_json {
        print(&format!("{:#}", serde_json::json!(diagnosis)))?;
    } else {
        print(&diagnosis.table(Style::of_stdout()))?;
    }
    if diagnosis.live {
        return Ok(());
    }
    let missing = diagnosis.findings.iter().filter(|f| f.state == State::Missing);
    let names: Vec<_> = missing.map(|f| f.name.as_str()).collect();
    Err(Failure::Broken(format!(
        "no live runs here: {} missing; virtual runs work",
        names.join(", ")
    )))
}
