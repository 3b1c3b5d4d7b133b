//! `dormouse explain`.

use std::path::Path;

use super::failure::Failure;
use super::print::print;
use super::torn::say_torn;
use crate::batch;
use crate::experiment::Kind;
use crate::explain::Explainer;
use crate::output::RunLog;

pub(crate) fn run(dir: &Path, what: &str) -> Result<(), Failure> {
    if crate::output::kind_of(dir)? == Kind::Batch {
        return super::batch::explain(dir, what);
    }
    let RunLog { header, steps, torn } = RunLog::read(dir)?;
    say_torn(dir, torn)?;
    let of_bag = Explainer::new(&header, &steps).explain(what);
    let jobs = batch::jobs_log(&header, &steps).filter(|_| of_bag.is_none());
    let of_jobs = jobs.map(|jobs| batch::explain(&jobs, what)).transpose()?.flatten();
    match of_bag.or(of_jobs) {
        Some(text) => print(&text),
        None => Err(Failure::BadInput(format!(
            "{}: there is no '{what}' in this run; ask for a task such as task0, or a VM such as vm0",
            dir.display()
        ))),
    }
}
