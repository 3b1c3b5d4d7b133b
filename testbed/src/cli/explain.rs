//! `dormouse explain`.

use std::path::Path;

use serde_json::json;

use super::failure::Failure;
use super::print::print;
use super::recorded::{not_again, read_log};
use crate::explain::{ask_for, explain};

pub(crate) fn run(dir: &Path, what: &str, as_json: bool) -> Result<(), Failure> {
    let log = read_log(dir)?;
    match explain(&log, what).map_err(not_again(dir))? {
        Some(told) if as_json => print(&format!("{:#}", json!(told))),
        Some(told) => print(&told.to_string()),
        None => {
            let experiment = &log.header.experiment;
            let job = if experiment.scheduler.is_some() { "" } else { "job " };
            Err(Failure::BadInput(format!(
                "{}: there is no {job}'{what}' in this run; ask for {}",
                dir.display(),
                ask_for(experiment)
            )))
        }
    }
}
