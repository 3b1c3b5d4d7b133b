//! `dormouse replay`.

use std::path::Path;

use super::failure::Failure;
use super::print::print;
use super::torn::say_torn;
use crate::experiment::Kind;
use crate::output::RunLog;
use crate::replay::replay;

pub(crate) fn run(dir: &Path) -> Result<(), Failure> {
    if crate::output::kind_of(dir)? == Kind::Batch {
        return super::batch::replay(dir);
    }
    let RunLog { header, steps, torn } = RunLog::read(dir)?;
    say_torn(dir, torn)?;
    let experiment = &header.experiment;
    let policy = experiment.scheduler().map_err(|error| {
        Failure::BadInput(format!("{}: {error}; give the folder of a run", dir.display()))
    })?;
    let replayed = replay(experiment.run(policy), &steps);
    let Some(difference) = replayed.difference else {
        return print(&format!(
            "{} steps, {} decisions: all as recorded\n{}",
            replayed.steps, replayed.decisions, replayed.digest
        ));
    };
    let (recorded, again) = &*difference;
    let json = |step| serde_json::to_string(step).unwrap_or_default();
    print(&format!("recorded: {}\nreplayed: {}", json(recorded), json(again)))?;
    Err(Failure::Broken(format!(
        "{}: step {} comes out otherwise; it was made by version {}, this is {}",
        dir.display(),
        recorded.seq,
        header.dormouse,
        env!("CARGO_PKG_VERSION")
    )))
}
