//! `dormouse explain`.

use std::path::Path;

use super::failure::Failure;
use super::print::print;
use crate::explain::Explainer;
use crate::output::read_log;

pub(crate) fn run(dir: &Path, what: &str) -> Result<(), Failure> {
    let (header, steps) = read_log(dir)?;
    match Explainer::new(&header, &steps).explain(what) {
        Some(text) => print(&text),
        None => Err(Failure::BadInput(format!(
            "{}: there is no '{what}' in this run; ask for a task such as task0, or a VM such as vm0",
            dir.display()
        ))),
    }
}
