//! What a live run on workers of this host can't do without.

use super::{Finding, State, criu, groups, kernel, resources};

/// The first thing that is missing for one, with CRIU among what it needs or without.
#[must_use]
pub fn lacking(needs_criu: bool) -> Option<Finding> {
    let first = |findings: Vec<Finding>| findings.into_iter().find(|f| f.state == State::Missing);
    first(vec![kernel::capabilities()])
        .or_else(|| first(groups::control_groups()))
        .or_else(|| first(kernel::namespaces()))
        .or_else(|| first(vec![resources::task_program()]))
        .or_else(|| first(if needs_criu { criu::criu() } else { Vec::new() }))
}
